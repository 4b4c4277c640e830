/* In: polynomials. Out: their sums, products, exact quotients, values and text. Left alone: what the symbols mean, and
 * whether a fraction is whole for their values.
 * Terms are in graded lexicographic order, highest degree first, which multiplication keeps: so long division is exact.
 */
#include "ir/poly.h"

#include <string.h>

#define MAX_COEFFICIENT ((int64_t)1 << 62) /* absolute values stay below */
#define MAX_TERMS 256                      /* of one polynomial; more counts as overflow: no real size has a dozen */

static uint32_t degree_of(const Term *term) {
    uint32_t degree = 0;
    while (degree < IR_MAX_DEGREE && term->symbol[degree] != IR_NO_SYMBOL) degree++;
    return degree;
}

static int compare_monomials(const Term *a, const Term *b) {
    uint32_t da = degree_of(a), db = degree_of(b);
    if (da != db) return da > db ? -1 : 1;
    for (uint32_t i = 0; i < da; i++) {
        if (a->symbol[i] != b->symbol[i]) return a->symbol[i] < b->symbol[i] ? -1 : 1;
    }
    return 0;
}

static bool too_large(int64_t value) { return value >= MAX_COEFFICIENT || value <= -MAX_COEFFICIENT; }

static Term term_int(int64_t value) {
    Term term = {.coefficient = value, .divisor = 1};
    memset(term.symbol, 0xff, sizeof term.symbol);
    return term;
}

int64_t ir_common_factor(int64_t a, int64_t b) {
    if (a < 0) a = -a;
    if (b < 0) b = -b;
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a ? a : 1;
}

/* Lowest terms; the divisor is positive. */
static void reduce(Term *term) {
    int64_t factor = ir_common_factor(term->coefficient, term->divisor);
    term->coefficient /= factor;
    term->divisor /= factor;
}

/* The coefficient becomes a/b more; false on overflow. */
static bool add_fraction(Term *term, int64_t a, int64_t b) {
    if (term->divisor != b) {
        int64_t mine = term->divisor;
        if (ir_mul_overflows(term->coefficient, b, &term->coefficient) || ir_mul_overflows(a, mine, &a) ||
            ir_mul_overflows(mine, b, &term->divisor))
            return false;
    }
    if (ir_add_overflows(term->coefficient, a, &term->coefficient)) return false;
    if (term->divisor != 1) reduce(term);
    return true;
}

static Poly single(Job *job, Term term) {
    Term *kept = IR_NEW(job, Term);
    *kept = term;
    return (Poly){1, kept};
}

Poly ir_poly_int(Job *job, int64_t value) {
    if (!value) return (Poly){0, NULL};
    return single(job, term_int(value));
}

Poly ir_poly_symbol(Job *job, uint32_t symbol) {
    IR_REQUIRE(job, symbol < IR_NO_SYMBOL);
    Term term = term_int(1);
    term.symbol[0] = (uint16_t)symbol;
    return single(job, term);
}

/* a + factor * b, a merge of two sorted lists. */
static Poly add_scaled(Job *job, Poly a, Poly b, int64_t factor, bool *overflow) {
    if (!b.count) return a;
    Term *terms = IR_NEW_ARRAY(job, Term, (size_t)a.count + b.count);
    uint32_t i = 0, j = 0, count = 0;
    while (i < a.count || j < b.count) {
        int order = i == a.count ? 1 : j == b.count ? -1 : compare_monomials(&a.terms[i], &b.terms[j]);
        Term term = order <= 0 ? a.terms[i] : b.terms[j];
        if (order > 0) term.coefficient = 0;
        if (order <= 0) i++;
        bool wide = false;
        if (order >= 0) {
            int64_t scaled;
            const Term *other = &b.terms[j++];
            wide =
                ir_mul_overflows(other->coefficient, factor, &scaled) || !add_fraction(&term, scaled, other->divisor);
        }
        if (wide || too_large(term.coefficient) || too_large(term.divisor)) {
            *overflow = true;
            term.coefficient = term.divisor = 1;
        }
        if (term.coefficient) terms[count++] = term;
    }
    if (count > MAX_TERMS) {
        *overflow = true;
        count = MAX_TERMS;
    }
    return (Poly){count, terms};
}

Poly ir_poly_add(Job *job, Poly a, Poly b, bool *overflow) { return add_scaled(job, a, b, 1, overflow); }
Poly ir_poly_sub(Job *job, Poly a, Poly b, bool *overflow) { return add_scaled(job, a, b, -1, overflow); }

static Term multiply_terms(const Term *a, const Term *b, bool *overflow) {
    Term product = term_int(0);
    uint32_t da = degree_of(a), db = degree_of(b);
    Term left = {.coefficient = a->coefficient, .divisor = b->divisor};
    Term right = {.coefficient = b->coefficient, .divisor = a->divisor};
    reduce(&left);
    reduce(&right);
    if (da + db > IR_MAX_DEGREE || ir_mul_overflows(left.coefficient, right.coefficient, &product.coefficient) ||
        ir_mul_overflows(left.divisor, right.divisor, &product.divisor) || too_large(product.coefficient) ||
        too_large(product.divisor)) {
        *overflow = true;
        return term_int(1);
    }
    for (uint32_t i = 0, j = 0, k = 0; k < da + db; k++) {
        bool first = j == db || (i < da && a->symbol[i] <= b->symbol[j]);
        product.symbol[k] = first ? a->symbol[i++] : b->symbol[j++];
    }
    return product;
}

/* Multiplying by one term keeps the order. */
static Poly multiply_by_term(Job *job, Poly a, const Term *by, bool *overflow) {
    Term *terms = IR_NEW_ARRAY(job, Term, a.count);
    for (uint32_t i = 0; i < a.count; i++) {
        terms[i] = multiply_terms(&a.terms[i], by, overflow);
        if (*overflow) return ir_poly_int(job, 1);
    }
    return (Poly){a.count, terms};
}

Poly ir_poly_mul(Job *job, Poly a, Poly b, bool *overflow) {
    Poly sum = {0, NULL};
    if ((uint64_t)a.count * b.count > MAX_TERMS) {
        *overflow = true;
        return ir_poly_int(job, 1);
    }
    for (uint32_t i = 0; i < b.count; i++) {
        bool wide = false;
        Poly part = multiply_by_term(job, a, &b.terms[i], &wide);
        sum = ir_poly_add(job, sum, part, &wide);
        if (wide) {
            *overflow = true;
            return ir_poly_int(job, 1);
        }
    }
    return sum;
}

Poly ir_poly_over(Job *job, Poly a, int64_t divisor, bool *overflow) {
    Term by = {.coefficient = divisor < 0 ? -1 : 1, .divisor = divisor < 0 ? -divisor : divisor};
    memset(by.symbol, 0xff, sizeof by.symbol);
    return multiply_by_term(job, a, &by, overflow);
}

Poly ir_poly_whole(Job *job, Poly a, int64_t *divisor, bool *overflow) {
    *divisor = 1;
    for (uint32_t i = 0; i < a.count; i++) {
        int64_t more = a.terms[i].divisor / ir_common_factor(*divisor, a.terms[i].divisor);
        if (ir_mul_overflows(*divisor, more, divisor) || too_large(*divisor)) {
            *overflow = true;
            *divisor = 1;
            return ir_poly_int(job, 1);
        }
    }
    if (*divisor == 1) return a;
    Term by = term_int(*divisor);
    return multiply_by_term(job, a, &by, overflow);
}

static bool term_is_whole(const Term *term, const Multiples *known) {
    int64_t left = term->divisor; /* in lowest terms the coefficient has no part of it */
    for (uint32_t k = 0; known && k < degree_of(term); k++)
        if (term->symbol[k] < known->count) left /= ir_common_factor(left, known->at[term->symbol[k]]);
    return left == 1;
}

bool ir_poly_is_whole(Poly a, const Multiples *known) {
    for (uint32_t t = 0; t < a.count; t++)
        if (!term_is_whole(&a.terms[t], known)) return false;
    return true;
}

static bool divide_terms(const Term *a, const Term *b, const Multiples *known, Term *quotient) {
    *quotient = (Term){0};
    if (ir_mul_overflows(a->coefficient, b->divisor, &quotient->coefficient) ||
        ir_mul_overflows(b->coefficient, a->divisor, &quotient->divisor) || quotient->coefficient == INT64_MIN ||
        quotient->divisor == INT64_MIN)
        return false;
    if (quotient->divisor < 0) {
        quotient->coefficient = -quotient->coefficient;
        quotient->divisor = -quotient->divisor;
    }
    reduce(quotient);
    if (too_large(quotient->coefficient) || too_large(quotient->divisor)) return false;
    memset(quotient->symbol, 0xff, sizeof quotient->symbol);
    uint32_t j = 0, k = 0;
    for (uint32_t i = 0; i < degree_of(a); i++) {
        if (j < IR_MAX_DEGREE && b->symbol[j] == a->symbol[i]) {
            j++;
        } else {
            quotient->symbol[k++] = a->symbol[i];
        }
    }
    return j == degree_of(b) && term_is_whole(quotient, known);
}

bool ir_poly_div(Job *job, Poly a, Poly b, const Multiples *known, Poly *quotient) {
    *quotient = (Poly){0, NULL};
    if (!b.count) return false;
    bool overflow = false;
    uint32_t steps = 0;
    while (a.count) {
        Term term;
        if (++steps > MAX_TERMS || !divide_terms(&a.terms[0], &b.terms[0], known, &term)) return false;
        Poly part = multiply_by_term(job, b, &term, &overflow);
        if (overflow) return false;
        a = ir_poly_sub(job, a, part, &overflow);
        *quotient = ir_poly_add(job, *quotient, single(job, term), &overflow);
        if (overflow) return false;
    }
    return true;
}

int ir_poly_compare(Poly a, Poly b) {
    for (uint32_t i = 0; i < a.count && i < b.count; i++) {
        int order = compare_monomials(&a.terms[i], &b.terms[i]);
        if (order) return order;
        int64_t x = a.terms[i].coefficient, y = b.terms[i].coefficient;
        if (x != y) return x < y ? -1 : 1;
        x = a.terms[i].divisor, y = b.terms[i].divisor;
        if (x != y) return x < y ? -1 : 1;
    }
    return a.count == b.count ? 0 : a.count < b.count ? -1 : 1;
}

bool ir_poly_equal(Poly a, Poly b) { return a.count == b.count && !ir_poly_compare(a, b); }

bool ir_poly_is_int(Poly a, int64_t *value) {
    if (a.count > 1 || (a.count == 1 && (degree_of(&a.terms[0]) || a.terms[0].divisor != 1))) return false;
    if (value) *value = a.count ? a.terms[0].coefficient : 0;
    return true;
}

Poly ir_poly_fold(Job *job, Poly a, const int64_t *values, uint32_t count, bool *overflow) {
    Poly sum = {0, NULL};
    for (uint32_t i = 0; i < a.count; i++) {
        Term folded = term_int(a.terms[i].coefficient);
        folded.divisor = a.terms[i].divisor;
        uint32_t kept = 0;
        bool wide = false, zero = false;
        for (uint32_t k = 0; k < degree_of(&a.terms[i]); k++) {
            uint16_t symbol = a.terms[i].symbol[k];
            if (symbol >= count || values[symbol] == -1) {
                folded.symbol[kept++] = symbol;
            } else if (!values[symbol]) {
                zero = true;
            } else if (ir_mul_overflows(folded.coefficient, values[symbol], &folded.coefficient) ||
                       too_large(folded.coefficient)) {
                wide = true;
                folded.coefficient = 1;
            }
        }
        if (zero) continue;
        if (wide) *overflow = true;
        reduce(&folded);
        sum = ir_poly_add(job, sum, single(job, folded), overflow);
    }
    return sum;
}

static bool eval_term(const Term *term, const int64_t *dims, uint32_t dim_count, const int64_t *parts,
                      uint32_t part_count, int64_t *value) {
    int64_t product = term->coefficient;
    bool wide = false, zero = false;
    for (uint32_t k = 0; k < degree_of(term); k++) {
        uint32_t symbol = term->symbol[k];
        bool part = symbol >= IR_POLY_PART;
        uint32_t index = part ? symbol - IR_POLY_PART : symbol;
        if (index >= (part ? part_count : dim_count)) return false;
        int64_t factor = part ? parts[index] : dims[index];
        if (!factor) zero = true;
        if (!wide && (ir_mul_overflows(product, factor, &product) || too_large(product))) wide = true;
    }
    *value = zero ? 0 : product;
    return zero || !wide;
}

bool ir_poly_eval(Poly a, const int64_t *dims, uint32_t dim_count, const int64_t *parts, uint32_t part_count,
                  int64_t *value) {
    Term sum = {.coefficient = 0, .divisor = 1};
    for (uint32_t i = 0; i < a.count; i++) {
        int64_t term;
        if (!eval_term(&a.terms[i], dims, dim_count, parts, part_count, &term)) return false;
        if (!add_fraction(&sum, term, a.terms[i].divisor)) return false;
    }
    *value = sum.coefficient;
    return sum.divisor == 1 && !too_large(sum.coefficient);
}

static void print_symbol(Text *text, uint16_t symbol, const char *const *names, uint32_t count) {
    if (symbol >= IR_POLY_PART) {
        ir_text_format(text, "P%u", (unsigned)(symbol - IR_POLY_PART));
    } else if (symbol < count) {
        ir_text_put(text, names[symbol]);
    } else {
        ir_text_format(text, "?%u", (unsigned)symbol);
    }
}

static void print_term(Text *text, const Term *term, bool first, const char *const *names, uint32_t count) {
    uint32_t degree = degree_of(term);
    int64_t size = term->coefficient;
    if (!first) {
        ir_text_put(text, size < 0 ? " - " : " + ");
        size = size < 0 ? -size : size;
    }
    if (degree && size == -1)
        ir_text_put(text, "-");
    else if (!degree || size != 1)
        ir_text_format(text, "%lld%s", (long long)size, degree ? "*" : "");
    for (uint32_t k = 0; k < degree; k++) {
        if (k) ir_text_put(text, "*");
        print_symbol(text, term->symbol[k], names, count);
    }
    if (term->divisor != 1) ir_text_format(text, "/%lld", (long long)term->divisor);
}

/* More than one fraction, or one without a symbol, need not be whole each: their sum is printed over one divisor. */
void ir_poly_print(Text *text, Poly a, const char *const *names, uint32_t count) {
    uint32_t fractions = 0;
    int64_t divisor = 1;
    bool overflow = false, alone = false;
    for (uint32_t i = 0; i < a.count; i++) {
        fractions += a.terms[i].divisor != 1;
        alone = alone || (a.terms[i].divisor != 1 && !degree_of(&a.terms[i]));
    }
    if (fractions > 1 || alone) a = ir_poly_whole(text->job, a, &divisor, &overflow);
    if (!a.count) ir_text_put(text, "0");
    if (divisor != 1) ir_text_put(text, "(");
    for (uint32_t i = 0; i < a.count; i++) print_term(text, &a.terms[i], i == 0, names, count);
    if (divisor != 1) ir_text_format(text, ")/%lld", (long long)divisor);
}
