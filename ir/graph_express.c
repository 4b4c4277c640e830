/* In: a value, and the texts of its operands. Out: its texts, each tried against the rules that reading goes by
 * (ir/weak.h, ir_graph_op): one that would give another dtype, constant or cast is not used. */
#include "ir/graph_express.h"

#include <math.h>
#include <string.h>

#include "ir/weak.h"

static const Value *value_of(const Express *express, uint32_t id) { return &express->file.graph->values.at[id]; }

static bool is_strong(const Piece *piece) { return piece->text && !ir_arg_is_weak(&piece->arg); }

/* ---- what reading makes of an operand ---- */

static bool reads_as(const Express *express, const Arg *arg, const DType *want, uint32_t id);

static DType read_dtype(const Express *express, const Arg *arg, const DType *want) {
    DType operands[3], result = DTYPE_F32;
    switch (arg->kind) {
    case ARG_VALUE: return value_of(express, arg->value)->dtype;
    case ARG_NUMBER: return ir_weak_number_dtype(arg, want);
    case ARG_SIZE: return DTYPE_I64;
    case ARG_OP: break;
    default: return DTYPE_BOOL;
    }
    const DType *inner = ir_weak_operand_want(arg, want);
    for (uint32_t i = 0; i < arg->count; i++) operands[i] = read_dtype(express, &arg->item[i], inner);
    return ir_op_dtype(arg->op, operands, &result) ? result : DTYPE_BOOL;
}

/* Whether the op on these operands, of which the weak ones take want, is the value, with the casts that reading puts
 * where dtypes meet. */
static bool reads_op(const Express *express, Op op, const Arg *args, const DType *want, uint32_t id) {
    const Value *value = value_of(express, id);
    DType operands[3];
    if (value->op != op) return false;
    for (uint32_t i = 0; i < value->arg_count; i++) operands[i] = read_dtype(express, &args[i], want);
    DType meeting = ir_op_operand_dtype(op, operands);
    for (uint32_t i = 0; i < value->arg_count; i++) {
        bool as_it_is = ir_op(op)->rule == RULE_TEST || (ir_op(op)->rule == RULE_WHERE && i == 0);
        const Value *operand = value_of(express, value->arg[i]);
        bool cast = !as_it_is && ir_compute_dtype(operands[i]) != meeting;
        if (cast && (operand->op != OP_CAST || operand->dtype != meeting)) return false;
        if (!reads_as(express, &args[i], want, cast ? operand->arg[0] : value->arg[i])) return false;
    }
    return true;
}

static bool reads_number(const Arg *arg, const DType *want, const Value *value) {
    DType dtype = ir_weak_number_dtype(arg, want);
    double number = ir_round(dtype, arg->number);
    if (value->op != OP_CONST || value->dtype != dtype) return false;
    if (ir_dtype(dtype)->kind != KIND_FLOAT) return value->bits == (uint64_t)arg->integer;
    return memcmp(&number, &value->bits, sizeof number) == 0;
}

static bool reads_as(const Express *express, const Arg *arg, const DType *want, uint32_t id) {
    const Value *value = value_of(express, id);
    switch (arg->kind) {
    case ARG_VALUE: return arg->value == id;
    case ARG_NUMBER: return reads_number(arg, want, value);
    case ARG_SIZE: return value->op == OP_SIZE && ir_poly_equal(value->size, arg->size);
    case ARG_OP: return reads_op(express, arg->op, arg->item, ir_weak_operand_want(arg, want), id);
    case ARG_BOOL:
        return value->op == OP_CONST && value->dtype == DTYPE_BOOL && (value->bits != 0) == (arg->integer != 0);
    default: return false;
    }
}

/* Whether some user could read the weak operand as the value. */
static bool could_read(const Express *express, const Arg *arg, uint32_t id) {
    static const DType wants[] = {DTYPE_F32, DTYPE_F64, DTYPE_I64};
    bool could = reads_as(express, arg, NULL, id);
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) could = could || reads_as(express, arg, &wants[i], id);
    return could;
}

/* ---- leaves ---- */

static Piece value_piece(const char *text, Bind bind, uint32_t id) {
    return (Piece){text, bind, {.kind = ARG_VALUE, .value = id}};
}

static Pieces one_piece(Piece piece) { return (Pieces){{piece, piece, piece}}; }

static Bind number_bind(const char *text) { return text[0] == '-' ? BIND_UNARY : BIND_ATOM; }

static Piece number_piece(Job *job, const char *text) {
    Arg arg = {.kind = ARG_NUMBER, .is_integer = !strpbrk(text, ".einf")};
    const char *bare = text + (*text == '-');
    size_t count = strlen(text);
    if (strcmp(bare, "inf") == 0 || strcmp(bare, "nan") == 0)
        arg.number = copysign(*bare == 'i' ? HUGE_VAL : (double)NAN, *text == '-' ? -1 : 1);
    else
        IR_REQUIRE(job, ir_read_double(job, text, count, &arg.number));
    if (arg.is_integer) IR_REQUIRE(job, ir_read_int(text, count, &arg.integer));
    return (Piece){text, number_bind(text), arg};
}

static Pieces express_const(const Express *express, uint32_t id) {
    const Value *value = value_of(express, id);
    Job *job = express->file.job;
    const char *dtype = ir_dtype(value->dtype)->name, *bare, *point;
    double number;
    memcpy(&number, &value->bits, sizeof number);
    switch (ir_dtype(value->dtype)->kind) {
    case KIND_BOOL: {
        Piece word = {value->bits ? "True" : "False", BIND_ATOM, {.kind = ARG_BOOL, .integer = value->bits != 0}};
        return (Pieces){{word, word, value_piece(value->bits ? "cast(1, bool)" : "cast(0, bool)", BIND_ATOM, id)}};
    }
    case KIND_INT:
        bare = ir_format(job, "%lld", (long long)value->bits);
        if ((int64_t)value->bits == INT64_MIN) bare = "-inf"; /* which casts to it, while its digits are too large */
        point = bare;
        break;
    default:
        bare = ir_file_number(&express->file, value->dtype, number, false);
        point = ir_file_number(&express->file, value->dtype, number, true);
    }
    Pieces pieces = one_piece(value_piece(ir_format(job, "cast(%s, %s)", bare, dtype), BIND_ATOM, id));
    if (value->dtype == DTYPE_F32 || value->dtype == DTYPE_F64 ||
        (value->dtype == DTYPE_I64 && strcmp(bare, "-inf") != 0)) {
        pieces.form[FORM_BARE] = number_piece(job, bare);
        pieces.form[FORM_POINT] = number_piece(job, point);
    }
    return pieces;
}

/* A size as an operand. A quotient is exact within size() only, and there a number is a size. */
static Piece size_piece(const Express *express, Poly size) {
    const char *text = ir_file_size(&express->file, size);
    Piece piece = {text, BIND_ATOM, {.kind = ARG_SIZE, .size = size}};
    if (strchr(text, '/') || size.count == 0 || ir_poly_is_int(size, &(int64_t){0}))
        piece.text = ir_format(express->file.job, "size(%s)", text);
    else if (size.count > 1)
        piece.bind = BIND_SUM;
    else if (strchr(text, '*'))
        piece.bind = BIND_PRODUCT;
    else
        piece.bind = number_bind(text);
    return piece;
}

/* ---- operators ---- */

static const struct {
    Op op;
    Bind bind;
} binds[] = {
    {OP_LT, BIND_COMPARE},  {OP_LE, BIND_COMPARE},       {OP_GT, BIND_COMPARE},  {OP_GE, BIND_COMPARE},
    {OP_EQ, BIND_COMPARE},  {OP_NE, BIND_COMPARE},       {OP_OR, BIND_OR},       {OP_AND, BIND_AND},
    {OP_ADD, BIND_SUM},     {OP_SUB, BIND_SUM},          {OP_MUL, BIND_PRODUCT}, {OP_DIV, BIND_PRODUCT},
    {OP_MOD, BIND_PRODUCT}, {OP_FLOORDIV, BIND_PRODUCT}, {OP_POW, BIND_POWER},   {OP_NEG, BIND_UNARY},
    {OP_NOT, BIND_UNARY},
};

/* BIND_ATOM: a call. */
static Bind bind_of(Op op) {
    for (size_t i = 0; i < sizeof binds / sizeof *binds; i++)
        if (binds[i].op == op) return binds[i].bind;
    return BIND_ATOM;
}

static const char *bracketed(Job *job, const Piece *piece, Bind least) {
    return piece->bind >= least ? piece->text : ir_format(job, "(%s)", piece->text);
}

static const char *op_text(Job *job, Op op, const Piece *operands) {
    const OpRow *row = ir_op(op);
    const Bind bind = bind_of(op);
    if (bind == BIND_ATOM) {
        Text text = ir_text(job);
        ir_text_format(&text, "%s(", row->name);
        for (uint32_t i = 0; i < row->arity; i++) ir_text_format(&text, "%s%s", i ? ", " : "", operands[i].text);
        ir_text_put(&text, ")");
        return ir_text_string(&text);
    }
    if (bind == BIND_UNARY) return ir_format(job, "%s%s", row->symbol, bracketed(job, &operands[0], BIND_UNARY));
    /* of one strength the left one comes first, but a ** b ** c is a ** (b ** c); comparisons do not chain */
    Bind left = bind == BIND_POWER ? BIND_ATOM : bind == BIND_COMPARE ? BIND_OR : bind;
    Bind right = bind == BIND_POWER ? BIND_UNARY : (Bind)(bind + 1);
    return ir_format(job, "%s %s %s", bracketed(job, &operands[0], left), row->symbol,
                     bracketed(job, &operands[1], right));
}

/* The op on these texts, and what it reads as; a weak operation may read as another than the value. */
static Piece op_piece(const Express *express, Op op, const Piece *operands, uint32_t id) {
    Job *job = express->file.job;
    uint32_t count = ir_op(op)->arity;
    Arg args[3], result;
    DType dtype;
    bool overflow = false;
    for (uint32_t i = 0; i < count; i++) args[i] = operands[i].arg;
    if (!ir_op_is_weak(op, args, count)) {
        bool strong = ir_weak_meeting(express->file.graph, op, args, count, &dtype);
        if (!reads_op(express, op, args, strong ? &dtype : NULL, id)) return (Piece){0};
        return value_piece(op_text(job, op, operands), bind_of(op), id);
    }
    if (!ir_weak_fold(job, op, args, count, &result, &overflow)) {
        Arg *item = IR_NEW_ARRAY(job, Arg, count);
        memcpy(item, args, count * sizeof *item);
        result = (Arg){.kind = ARG_OP, .op = op, .count = count, .item = item};
    }
    if (overflow || !could_read(express, &result, id)) return (Piece){0};
    return (Piece){op_text(job, op, operands), bind_of(op), result};
}

/* The texts that may stand for an operand: without the cast that reading would put there again, then with it. */
static uint32_t operand_pieces(const Express *express, uint32_t id, Piece found[2 * FORM_COUNT]) {
    const Value *value = value_of(express, id);
    bool may_cast = value->op == OP_CAST && value->dtype == ir_compute_dtype(value->dtype) && !express->node[id];
    uint32_t count = 0;
    for (int bare = may_cast ? 1 : 0; bare >= 0; bare--) {
        const Piece *form = express->pieces[bare ? value->arg[0] : id].form;
        for (int k = 0; k < FORM_COUNT; k++)
            if (form[k].text && (k == 0 || form[k].text != form[k - 1].text)) found[count++] = form[k];
    }
    return count;
}

/* No text of the value suits: operands that are weak in all of theirs become nodes. */
static void want_strong(Express *express, uint32_t id) {
    const Value *value = value_of(express, id);
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < value->arg_count; i++) {
        uint32_t at = value->arg[i];
        if (is_strong(&express->pieces[at].form[FORM_STRONG])) continue;
        express->wanted[at] = true;
        wanted++;
    }
    IR_REQUIRE(express->file.job, wanted > 0);
}

static Pieces express_op(Express *express, uint32_t id) {
    const Value *value = value_of(express, id);
    Pieces result = {0};
    Piece found[3][2 * FORM_COUNT] = {0}, operands[3] = {0};
    uint32_t counts[3] = {1, 1, 1}, at[3] = {0};
    for (uint32_t i = 0; i < value->arg_count; i++) counts[i] = operand_pieces(express, value->arg[i], found[i]);
    for (at[0] = 0; at[0] < counts[0]; at[0]++)
        for (at[1] = 0; at[1] < counts[1]; at[1]++)
            for (at[2] = 0; at[2] < counts[2]; at[2]++) {
                for (uint32_t i = 0; i < value->arg_count; i++) operands[i] = found[i][at[i]];
                Piece piece = op_piece(express, value->op, operands, id);
                if (!piece.text) continue;
                if (!result.form[FORM_BARE].text) result.form[FORM_BARE] = piece;
                result.form[is_strong(&piece) ? FORM_STRONG : FORM_POINT] = piece; /* the last weak one has points */
                if (!is_strong(&piece)) continue;
                return ir_arg_is_weak(&result.form[FORM_BARE].arg) ? result : one_piece(piece);
            }
    if (!result.form[FORM_BARE].text) want_strong(express, id);
    return result;
}

/* ---- calls ---- */

/* The text of an operand that meets want, or nothing; NULL: it is wanted as a node. */
static const Piece *operand_meeting(Express *express, uint32_t id, const DType *want) {
    const Piece *form = express->pieces[id].form;
    for (int k = 0; k < FORM_COUNT; k++)
        if (form[k].text && reads_as(express, &form[k].arg, want, id)) return &form[k];
    express->wanted[id] = true;
    return NULL;
}

static const Piece *operand_value(Express *express, uint32_t id) {
    const Piece *piece = &express->pieces[id].form[FORM_STRONG];
    if (piece->text && piece->arg.kind == ARG_VALUE) return piece;
    express->wanted[id] = true;
    return NULL;
}

static const char *cast_text(Express *express, const Value *value) {
    const Piece *form = express->pieces[value->arg[0]].form, *piece = NULL;
    const DType *want = ir_dtype(value->dtype)->kind == KIND_FLOAT ? &value->dtype : NULL;
    for (int k = 0; k < FORM_COUNT && !piece; k++) /* the cast of a number is a constant */
        if (form[k].text && form[k].arg.kind != ARG_NUMBER && reads_as(express, &form[k].arg, want, value->arg[0]))
            piece = &form[k];
    if (!piece) express->wanted[value->arg[0]] = true;
    return piece ? ir_format(express->file.job, "cast(%s, %s)", piece->text, ir_dtype(value->dtype)->name) : NULL;
}

/* Sums of bools count them: reading casts them by itself. */
static const char *reduce_text(Express *express, const Value *value) {
    const Value *from = value_of(express, value->arg[0]);
    bool counts = from->op == OP_CAST && from->dtype == DTYPE_I64 && !express->node[value->arg[0]] &&
                  value_of(express, from->arg[0])->dtype == DTYPE_BOOL;
    const Piece *piece = operand_meeting(express, counts ? from->arg[0] : value->arg[0], NULL);
    return piece ? ir_file_reduce(&express->file, value, piece->text) : NULL;
}

static const char *index_text(Express *express, const Value *value) {
    Job *job = express->file.job;
    const Piece *base = operand_meeting(express, value->arg[0], NULL), *by = NULL;
    const Shape *from = &value_of(express, value->arg[0])->shape;
    for (uint32_t i = 0; i < value->item_count; i++) {
        if (value->items[i].kind != ITEM_GATHER) continue;
        by = operand_value(express, value->items[i].index);
        if (!by) return NULL;
    }
    if (!base) return NULL;
    const char *items = ir_file_items(&express->file, value->items, value->item_count, from, by ? by->text : "");
    return ir_format(job, "%s%s", bracketed(job, base, BIND_ATOM), items);
}

/* ---- composites ---- */

/* Parameters that a call names, and those whose None says the same as no argument. */
static const char *const named_params[] = {"dim", "keepdim", "correction", "approximate", "beta", "threshold"};
static const char *const skipped_params[] = {"weight", "bias", "min", "max"};

static bool is_among(const char *word, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0) return true;
    return false;
}

/* An argument that is no value of the graph. */
static Piece arg_piece(const Express *express, const Arg *arg) {
    Job *job = express->file.job;
    Piece piece = {"None", BIND_ATOM, *arg};
    switch (arg->kind) {
    case ARG_NONE: break;
    case ARG_VALUE: IR_BREACH(job, "a list of values");
    case ARG_NUMBER:
        piece.text = arg->is_integer ? ir_format(job, "%lld", (long long)arg->integer)
                                     : ir_file_number(&express->file, DTYPE_F64, arg->number, true);
        piece.bind = number_bind(piece.text);
        break;
    case ARG_SIZE: return size_piece(express, arg->size);
    case ARG_BOOL: piece.text = arg->integer ? "True" : "False"; break;
    case ARG_TEXT: piece.text = ir_format(job, strchr(arg->text, '"') ? "'%s'" : "\"%s\"", arg->text); break;
    case ARG_OP: {
        Piece operands[3] = {0};
        for (uint32_t i = 0; i < arg->count; i++) operands[i] = arg_piece(express, &arg->item[i]);
        piece.text = op_text(job, arg->op, operands);
        piece.bind = bind_of(arg->op);
        break;
    }
    case ARG_LIST: {
        Text text = ir_text(job);
        ir_text_put(&text, "[");
        for (uint32_t i = 0; i < arg->count; i++)
            ir_text_format(&text, "%s%s", i ? ", " : "", arg_piece(express, &arg->item[i]).text);
        ir_text_put(&text, "]");
        piece.text = ir_text_string(&text);
    }
    }
    return piece;
}

static const char *call_text(Express *express, const Call *call) {
    bool named = false, whole = true;
    Text text = ir_text(express->file.job);
    ir_text_format(&text, "%s(", call->callee);
    for (uint32_t i = 0, shown = 0; i < call->count; i++) {
        const Arg *arg = &call->args[i];
        const char *param = call->params[i];
        bool skipped =
            arg->kind == ARG_NONE && is_among(param, skipped_params, sizeof skipped_params / sizeof *skipped_params);
        named = named || !call->given[i] || skipped ||
                is_among(param, named_params, sizeof named_params / sizeof *named_params);
        if (!call->given[i] || skipped) continue;
        const Piece *value = arg->kind == ARG_VALUE ? operand_value(express, arg->value) : NULL;
        whole = whole && (value || arg->kind != ARG_VALUE);
        const char *string = value ? value->text : arg_piece(express, arg).text;
        ir_text_format(&text, "%s%s%s%s", shown++ ? ", " : "", named ? param : "", named ? "=" : "", string);
    }
    ir_text_put(&text, ")");
    return whole ? ir_text_string(&text) : NULL;
}

/* ---- any value ---- */

/* The one text of a value that is no constant, size or operation of the table. */
static const char *other_text(Express *express, uint32_t id) {
    const GraphFile *file = &express->file;
    const Value *value = value_of(express, id);
    switch (value->op) {
    case OP_IOTA: return ir_format(file->job, "arange(%s)", ir_file_size(file, value->size));
    case OP_CAST: return cast_text(express, value);
    case OP_REDUCE: return reduce_text(express, value);
    case OP_INDEX: return index_text(express, value);
    case OP_COMPOSITE: return call_text(express, value->call);
    case OP_RESHAPE: {
        const Piece *piece = operand_meeting(express, value->arg[0], NULL);
        const char *sizes = ir_file_sizes(file, value->shape.extent, value->shape.rank);
        return piece ? ir_format(file->job, "reshape(%s, %s)", piece->text, sizes) : NULL;
    }
    default: IR_BREACH(file->job, "%s stands in no graph file", ir_op_name(value->op));
    }
}

Pieces ir_express(Express *express, uint32_t id) {
    const Value *value = value_of(express, id);
    if (value->op == OP_CONST) return express_const(express, id);
    if (value->op < OP_PRIMITIVES) return express_op(express, id);
    if (value->op != OP_SIZE) return one_piece(value_piece(other_text(express, id), BIND_ATOM, id));
    Piece piece = size_piece(express, value->size);
    return (Pieces){{piece, piece, {0}}};
}

const char *ir_express_node(Express *express, uint32_t id) {
    Pieces pieces = ir_express(express, id);
    for (int k = 0; k < FORM_COUNT; k++)
        if (pieces.form[k].text && reads_as(express, &pieces.form[k].arg, NULL, id)) return pieces.form[k].text;
    if (value_of(express, id)->op < OP_PRIMITIVES) want_strong(express, id);
    return NULL;
}
