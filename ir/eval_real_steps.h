/* In: elements of operands with their bounds. Out: the values of ops that jump: comparisons, logic, tests, rounding to
 * whole numbers, casts. Where an operand's interval reaches a jump, the bound reaches the other side and the element is
 * counted. Left alone: what is continuous (ir/eval_real_ops.h).
 *
 * Part of ir/eval_real.h. */

static void put_bool(const ElementOp *op, Lane out, int64_t i, bool value, bool doubt, bool counts) {
    out.integer[i * out.step] = value;
    out.bound[i * out.step] = doubt;
    if (doubt && counts) meet(op, out, i);
}

static void compare_floats(const ElementOp *op, const Lane *in, Lane out, int64_t count) {
    Reference *reference = ir_op(op->op)->REFERENCE;
    for (int64_t i = 0; i < count; i++) {
        REAL a = number_at(&in[0], i), b = number_at(&in[1], i);
        REAL ea = in[0].bound[i * in[0].step], eb = in[1].bound[i * in[1].step];
        bool certain_nan = (isnan(a) && ea == 0) || (isnan(b) && eb == 0);
        bool doubt = ea + eb > 0 && !certain_nan && !(fabs(a - b) > ea + eb);
        put_bool(op, out, i, reference(a, b, 0) != 0, doubt, true);
    }
}

static void compare_integers(const ElementOp *op, const Lane *in, Lane out, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        int64_t a = in[0].integer[i * in[0].step], b = in[1].integer[i * in[1].step];
        double error = in[0].bound[i * in[0].step] + in[1].bound[i * in[1].step];
        bool doubt = error > 0 && !(fabs((double)a - (double)b) > error);
        put_bool(op, out, i, ir_op(op->op)->integer(a, b, 0) != 0, doubt, true);
    }
}

/* and, or, not: a certain operand that decides leaves no doubt. The doubt was counted where it arose. */
static void logic(const ElementOp *op, const Lane *in, Lane out, int64_t count) {
    bool two = ir_op(op->op)->arity == 2;
    for (int64_t i = 0; i < count; i++) {
        bool a = in[0].integer[i * in[0].step] != 0, doubt_a = in[0].bound[i * in[0].step] > 0;
        bool b = two && in[1].integer[i * in[1].step] != 0, doubt_b = two && in[1].bound[i * in[1].step] > 0;
        bool deciding = op->op == OP_OR; /* the value that decides alone */
        bool decided = two && ((!doubt_a && a == deciding) || (!doubt_b && b == deciding));
        put_bool(op, out, i, ir_op(op->op)->integer(a, b, 0) != 0, (doubt_a || doubt_b) && !decided, false);
    }
}

static void test(const ElementOp *op, const Lane *in, Lane out, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        bool value = in->number && ir_op(op->op)->REFERENCE(number_at(in, i), 0, 0) != 0;
        put_bool(op, out, i, value, in->number && isinf(in->bound[i * in->step]), true);
    }
}

/* Largest distance of a step function's value from those at the ends of the operand's interval. */
static REAL jump(REAL value, REAL low, REAL high) {
    REAL down = low == value ? 0 : fabs(value - low), up = high == value ? 0 : fabs(high - value);
    REAL largest = down > up ? down : up;
    return isnan(down) || isnan(up) ? (REAL)INFINITY : largest;
}

/* floor, ceil, round, trunc, sign */
static void whole(const ElementOp *op, const Lane *in, Lane out, int64_t count) {
    Reference *reference = ir_op(op->op)->REFERENCE;
    for (int64_t i = 0; i < count; i++) {
        REAL a = number_at(in, i), e = in->bound[i * in->step], value = reference(a, 0, 0);
        REAL bound = e > 0 ? jump(value, reference(a - e, 0, 0), reference(a + e, 0, 0)) : 0;
        put_number(&out, i, value, bound);
        if (bound > 0) meet(op, out, i);
    }
}

/* floordiv and mod: the quotient's step is met when its floor differs at the corners. */
static void divide_down(const ElementOp *op, const Lane *in, Lane out, int64_t count) {
    Reference *floordiv = ir_op(OP_FLOORDIV)->REFERENCE;
    const double exact_below =
        op->compute == DTYPE_F64 ? 0x1p51 : 0x1p22; /* where a rounded quotient finds its floor */
    for (int64_t i = 0; i < count; i++) {
        REAL a = number_at(&in[0], i), b = number_at(&in[1], i);
        REAL ea = in[0].bound[i * in[0].step], eb = in[1].bound[i * in[1].step];
        REAL value = ir_op(op->op)->REFERENCE(a, b, 0), quotient = floordiv(a, b, 0), step = 0;
        for (int k = 0; k < 4 && ea + eb > 0; k++) {
            REAL corner = floordiv(k & 1 ? a + ea : a - ea, k & 2 ? b + eb : b - eb, 0);
            step = fmax(step, jump(quotient, corner, corner));
        }
        if (eb > 0 && fabs(b) <= eb) step = (REAL)INFINITY;
        if (step > 0) meet(op, out, i);
        REAL bound;
        double ulps = 0;
        if (op->op == OP_MOD) { /* the remainder goes round by the divisor at each step */
            bound = step > 0 ? fabs(b) + eb : ea + (eb > 0 ? fabs(quotient) * eb : 0);
            ulps = ea + eb == 0 && is_held(op->compute, value) ? 0 : 0.5;
        } else {
            bound = step;
            ulps = fabs(value) + bound < exact_below ? 0 : 2; /* quotients that the significand does not hold */
        }
        if (isinf(step) || isnan(bound)) bound = (REAL)INFINITY;
        if (isfinite(value)) bound = settle(op->compute, &value, bound, ulps);
        put_number(&out, i, value, bound);
    }
}

static bool eval_steps(const ElementOp *op, const Lane *in, Lane out, int64_t count) {
    bool is_float = ir_is_float(op->compute);
    switch (ir_op(op->op)->rule) {
    case RULE_COMPARE:
        if (is_float)
            compare_floats(op, in, out, count);
        else
            compare_integers(op, in, out, count);
        return true;
    case RULE_LOGIC: logic(op, in, out, count); return true;
    case RULE_TEST: test(op, in, out, count); return true;
    default: break;
    }
    if (!is_float) return false;
    switch (op->op) {
    case OP_FLOOR:
    case OP_CEIL:
    case OP_ROUND:
    case OP_TRUNC:
    case OP_SIGN: whole(op, in, out, count); return true;
    case OP_FLOORDIV:
    case OP_MOD: divide_down(op, in, out, count); return true;
    default: return false;
    }
}

/* ---- casts ---- */

/* Round an element of a float lane, or an integer, to a float dtype. Not counted: the value moves one unit at most. */
static void to_float(const ElementOp *op, Lane in, Lane out, int64_t count) {
    const DType dtype = op->result;
    for (int64_t i = 0; i < count; i++) {
        REAL e = in.bound[i * in.step], a = any_number_at(&in, i, in.number != NULL);
        REAL value =
            in.number || dtype != DTYPE_F32 ? ir_round(dtype, (double)a) : (REAL)(float)in.integer[i * in.step];
        if (op->casts != EVAL_CASTS_ROUND) value = a;
        REAL bound = e > 0 || op->casts == EVAL_CASTS_WIDEN
                         ? jump(value, ir_round(dtype, (double)(a - e)), ir_round(dtype, (double)(a + e)))
                         : 0;
        if (op->casts == EVAL_CASTS_PASS) bound = e;
        if ((isnan(value) && e > 0) || isinf(e)) bound = (REAL)INFINITY;
        put_number(&out, i, value, bound);
    }
}

static void float_to_int(const ElementOp *op, Lane in, Lane out, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        REAL a = number_at(&in, i), e = in.bound[i * in.step], bound = 0;
        int64_t value = ir_float_to_int(op->result, (double)a);
        if (e > 0) {
            int64_t low = ir_float_to_int(op->result, (double)(a - e)),
                    high = ir_float_to_int(op->result, (double)(a + e));
            bound = jump((REAL)value, (REAL)low, (REAL)high);
            if (op->result == DTYPE_BOOL) bound = fabs(a) <= e ? 1 : 0;
            if (isnan(a) || isinf(e)) bound = (REAL)INFINITY;
        }
        out.integer[i * out.step] = value;
        out.bound[i * out.step] = (double)bound;
        if (bound > 0) meet(op, out, i);
    }
}

static void int_to_int(DType dtype, Lane in, Lane out, int64_t count) {
    double high = dtype == DTYPE_U8 ? 255 : ldexp(1.0, ir_dtype(dtype)->bytes * 8 - 1) - 1;
    double low = dtype == DTYPE_U8 ? 0 : -high - 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t a = in.integer[i * in.step], value = ir_wrap_int(dtype, a);
        double e = in.bound[i * in.step];
        if (dtype == DTYPE_BOOL && e > 0)
            e = fabs((double)a) <= e ? 1 : 0;
        else if (e > 0 && ((double)a - e < low || (double)a + e > high))
            e = (double)INFINITY; /* it may wrap, or elsewhere */
        out.integer[i * out.step] = value;
        out.bound[i * out.step] = e;
    }
}

static void eval_cast(const ElementOp *op, Lane in, Lane out, int64_t count) {
    bool from_float = ir_is_float(op->source), is_float = ir_is_float(op->result);
    bool held = from_float && is_float && ir_compute_dtype(op->source) == op->result; /* widens, or is there already */
    bool widens = from_float && op->result == DTYPE_F64;
    if (op->source == op->result || held || widens)
        ir_lane_copy(in, out, count);
    else if (is_float)
        to_float(op, in, out, count);
    else if (from_float)
        float_to_int(op, in, out, count);
    else
        int_to_int(op->result, in, out, count);
}
