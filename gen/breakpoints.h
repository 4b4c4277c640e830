/* The numbers at which defaults change, GEN_NAME each (gen/breakpoints.def). */
#ifndef GEN_BREAKPOINTS_H
#define GEN_BREAKPOINTS_H

enum {
#define BREAKPOINT(id, value, what) GEN_##id = value,
#include "gen/breakpoints.def"
#undef BREAKPOINT
};

#endif
