/* The strategies' table as data (gen/strategies.def). */
#include "gen/plan.h"
#include <string.h>

static const StrategyRow rows[] = {
#define STRATEGY(id, name, use, skeleton) {name, use, skeleton},
#include "gen/strategies.def"
#undef STRATEGY
};

const StrategyRow *gen_strategy(Strategy strategy) { return &rows[strategy]; }

bool gen_holds_rows(Strategy strategy) { return strategy == STRATEGY_ROW_REGISTERS || strategy == STRATEGY_ROW_STREAM; }

bool gen_by_columns(Strategy strategy) { return strategy == STRATEGY_COLUMN || strategy == STRATEGY_FINALIZE; }

bool gen_strategy_find(const char *name, Strategy *strategy) {
    for (uint32_t i = 0; i < STRATEGY_COUNT; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        *strategy = (Strategy)i;
        return true;
    }
    return false;
}
