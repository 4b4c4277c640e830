// The kernel helpers' host bodies against references written apart from them: every 16-bit float widened, every
// rounding of neighbours with the points about their middle narrowed, from float and from double; NaN and zeros in
// maximum and minimum; sines; shuffles that keep to their lanes. In: nothing. Out: the lines that tests/run.sh counts.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>

// what stands under host marks in the helpers' files is for the host prelude and this test
static const char *failure;
static uint64_t shuffled(uint32_t, uint64_t value, uint32_t) { return value; }
static uint32_t lane() { return 0; }
static void fails(const char *what) { failure = what; }

#include "templates/math.cuh"

static unsigned long long checked;
static int failed;
static void expect(bool right, const char *what, double x, double got, double wanted) {
    checked++;
    if (right || ++failed > 10) return;
    std::printf("%s of %a is %a, not %a\n", what, x, got, wanted);
}

struct Format {
    const char *name;
    int significand, least; // bits with the hidden one; exponent of the least normal
    ng_u32 infinity;        // bits
};
static const Format bf16 = {"bf16", 8, -126, 0x7f80}, f16 = {"f16", 11, -14, 0x7c00};

// The value that the bits stand for, by their fields.
static double value_of(const Format &format, ng_u32 bits) {
    const int mantissa_bits = format.significand - 1;
    const ng_u32 low = bits & 0x7fff, mantissa = low & ((1u << mantissa_bits) - 1);
    const int exponent = (int)(low >> mantissa_bits);
    double size = exponent == 0
                      ? std::ldexp(mantissa, format.least - mantissa_bits)
                      : std::ldexp(mantissa + (1u << mantissa_bits), exponent - 1 + format.least - mantissa_bits);
    if (low == format.infinity) size = std::numeric_limits<double>::infinity();
    if (low > format.infinity) size = std::numeric_limits<double>::quiet_NaN();
    return (bits & 0x8000) != 0 ? -size : size;
}

static ng_u32 narrowed(const Format &format, float x) {
    return format.significand == 8 ? ng_narrow_bf16(x) : ng_narrow_f16(x);
}
static ng_u32 narrowed_pair(const Format &format, float low, float high) {
    return format.significand == 8 ? ng_narrow_bf16x2(low, high) : ng_narrow_f16x2(low, high);
}
static float widened(const Format &format, ng_u32 bits) {
    return format.significand == 8 ? ng_widen_bf16(bits) : ng_widen_f16(bits);
}
template <typename C> static float cast(const Format &format, C x) {
    return format.significand == 8 ? ng_cast_bf16(x) : ng_cast_f16(x);
}

static void check_rounding(const Format &format, double x, ng_u32 wanted) {
    const double value = value_of(format, wanted);
    const double by_cast = cast(format, x);
    expect(by_cast == value, "the cast from f64", x, by_cast, value);
    const float single = (float)x;
    if ((double)single != x) return;
    const ng_u32 got = narrowed(format, single);
    expect(got == wanted, format.name, x, value_of(format, got), value);
    const ng_u32 pair = narrowed_pair(format, single, -single), other = narrowed_pair(format, -single, single);
    expect(pair == (wanted | (wanted ^ 0x8000) << 16), "a pair's low half", x, pair, wanted);
    expect(other == ((wanted ^ 0x8000) | wanted << 16), "a pair's high half", x, other, wanted);
}

// Between each stored value and the next: both, their middle (to the even one), and what lies beside these.
static void check_format(const Format &format) {
    for (ng_u32 bits = 0; bits < 0x10000; bits++) {
        const double wanted = value_of(format, bits), got = widened(format, bits);
        expect(wanted != wanted ? got != got : got == wanted && std::signbit(got) == std::signbit(wanted), "widening",
               bits, got, wanted);
    }
    for (ng_u32 low = 0; low < format.infinity; low++) {
        const ng_u32 high = low + 1, even = low % 2 == 0 ? low : high;
        const double a = value_of(format, low);
        // beyond the largest finite value the step stays as it was
        const double b = high == format.infinity ? 2 * a - value_of(format, low - 1) : value_of(format, high);
        const double middle = (a + b) / 2, tiny = (b - a) * 0x1p-12;
        for (ng_u32 sign = 0; sign < 2; sign++) {
            const double s = sign != 0 ? -1 : 1;
            const ng_u32 mark = sign << 15;
            check_rounding(format, s * a, low | mark);
            check_rounding(format, s * (a + tiny), low | mark);
            check_rounding(format, s * (middle - tiny), low | mark);
            check_rounding(format, s * middle, even | mark);
            check_rounding(format, s * (middle + tiny), high | mark);
            check_rounding(format, s * (middle + (b - a) * 0x1p-40), high | mark); // a double alone
            check_rounding(format, s * (middle - (b - a) * 0x1p-40), low | mark);
        }
    }
    const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
    expect((narrowed(format, nan) & 0x7fff) > format.infinity, "narrowing", nan, narrowed(format, nan), nan);
    expect(narrowed(format, inf) == format.infinity, "narrowing", inf, narrowed(format, inf), format.infinity);
}

template <typename T> static void check_extremes(const char *name) {
    const T nan = std::numeric_limits<T>::quiet_NaN(), values[] = {nan, -2, (T)-0.0, 0, 3};
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 5; k++) {
            const T most = ng_maximum(values[i], values[k]), least = ng_minimum(values[i], values[k]);
            const T above = i == 0 || k == 0 ? nan : values[i > k ? i : k],
                    below = i == 0 || k == 0 ? nan : values[i < k ? i : k];
            const bool nans = above != above;
            expect(nans ? most != most : most == above && std::signbit(most) == std::signbit(above), name, i * 10 + k,
                   most, above);
            expect(nans ? least != least : least == below && std::signbit(least) == std::signbit(below), name,
                   i * 10 + k, least, below);
        }
    }
}

// Within the two ulps that the ops' table gives them, at every exponent, of both signs.
static void check_waves() {
    const float inf = std::numeric_limits<float>::infinity();
    for (ng_u64 bits = 0; bits < 0x7f800000; bits += 4999) {
        for (ng_u32 sign = 0; sign < 2; sign++) {
            const float x = ng_f32((ng_u32)bits | sign << 31);
            const double waves[] = {std::sin((double)x), std::cos((double)x)}, got[] = {ng_sin(x), ng_cos(x)};
            for (int k = 0; k < 2; k++) {
                const float size = std::fabs((float)waves[k]);
                const double ulp = (double)std::nextafter(size, inf) - (double)size;
                expect(std::fabs(got[k] - waves[k]) <= 2 * ulp, k == 0 ? "sin" : "cos", x, got[k], waves[k]);
            }
        }
    }
    expect(std::signbit(ng_sin(-0.0f)), "sin", -0.0, ng_sin(-0.0f), -0.0);
    expect(std::isnan(ng_sin(inf)) && std::isnan(ng_cos(-inf)), "sin and cos", inf, ng_sin(inf), ng_cos(-inf));
}

static void check_shuffles() {
    for (int lanes = 1; lanes <= 32; lanes *= 2) {
        for (int distance = 1; distance < 32; distance *= 2) {
            failure = nullptr;
            (void)ng_shuffle_xor(0, 1.0f, distance, lanes);
            expect((failure != nullptr) == (distance >= lanes), "a shuffle's refusal", distance, failure != nullptr,
                   lanes);
        }
    }
}

int main() {
    ng_host_api api = {};
    api.size = sizeof api;
    api.thread = lane;
    api.shuffle = shuffled;
    api.fail = fails;
    ng_host_bind(&api);
    check_format(bf16);
    check_format(f16);
    check_extremes<float>("the larger or smaller float");
    check_extremes<double>("the larger or smaller double");
    check_waves();
    check_shuffles();
    std::printf("# %llu results of helpers\n", checked);
    std::printf(failed != 0 ? "[  FAILED  ] 1 test(s): %d results differ\n" : "[  PASSED  ] 1 test(s).\n", failed);
    return failed != 0;
}
