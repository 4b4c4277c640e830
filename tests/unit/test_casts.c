/* Every dtype turned into every other, bit for bit: by a store and by a cast. One-byte and two-byte dtypes with all
 * their codes; the others with what lies on and about the boundaries of the narrower ones, the limits of integers, the
 * special values, and random bits. What must come out is taken from ir/dtype.c, which test_dtype.c checks by itself.
 *
 *   build/tests/test_casts [--device=host|cuda] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/device_case.h"
#include "tests/support/random.h"

typedef struct Data { /* elements of one dtype */
    DType dtype;
    IR_LIST(uint64_t) bits;
} Data;

static bool is_float(DType dtype) { return ir_dtype(dtype)->kind == KIND_FLOAT; }
static size_t bytes_of(DType dtype) { return ir_dtype(dtype)->bytes; }

/* ---- what goes in ---- */

static void add_bits(Job *job, Data *data, uint64_t bits) { *IR_PUSH(job, &data->bits) = bits; }

static void add_number(Job *job, Data *data, double number) {
    uint64_t bits = 0;
    ir_store_float(data->dtype, &bits, number);
    add_bits(job, data, bits);
}

/* A number and its neighbours on both sides. */
static void add_about(Job *job, Data *data, double number) {
    add_number(job, data, number);
    if (data->dtype == DTYPE_F64) {
        add_number(job, data, nextafter(number, HUGE_VAL));
        add_number(job, data, nextafter(number, -HUGE_VAL));
    } else {
        add_number(job, data, (double)nextafterf((float)number, HUGE_VALF));
        add_number(job, data, (double)nextafterf((float)number, -HUGE_VALF));
    }
}

/* Each number of a narrower float, and the middle between it and the next, where rounding turns. */
static void add_boundaries(Job *job, Data *data, DType narrow, uint32_t step) {
    uint32_t codes = 1u << 8 * bytes_of(narrow);
    for (uint32_t code = 0; code + 1 < codes; code += step) {
        uint32_t next = code + 1;
        double a = ir_load_float(narrow, &code), b = ir_load_float(narrow, &next);
        if (!isfinite(a)) continue;
        add_about(job, data, a);
        if (isfinite(b)) add_about(job, data, a / 2 + b / 2);
        if (!isfinite(b)) add_about(job, data, a + copysign(ir_ulp(narrow, a) / 2, a)); /* past the largest */
    }
}

static void add_whole(Job *job, Data *data) {
    for (int k = 0; k < 65; k++) {
        double power = ldexp(1, k);
        for (int sign = -1; sign <= 1; sign += 2) {
            add_about(job, data, sign * power);
            add_about(job, data, sign * (power - 1));
            add_about(job, data, sign * (power - 0.5));
        }
    }
}

static void fill_floats(Job *job, Data *data, Random *random) {
    static const DType narrower[] = {DTYPE_F8E4M3, DTYPE_F8E5M2, DTYPE_F16, DTYPE_BF16};
    for (size_t k = 0; k < sizeof narrower / sizeof *narrower; k++)
        add_boundaries(job, data, narrower[k], bytes_of(narrower[k]) == 1 ? 1 : 41 + random_below(random, 20));
    add_whole(job, data);
    static const double special[] = {
        0,     -0.0,     NAN,        -NAN,   HUGE_VAL, -HUGE_VAL,       464,           61440,
        65520, 0x1p-149, 0x1.8p-149, 1e-300, 1e300,    0x1.fffffefp127, 0x1.ffffffp127};
    for (size_t k = 0; k < sizeof special / sizeof *special; k++) add_about(job, data, special[k]);
    for (int i = 0; i < 4000; i++) {
        double wide = random_double_bits(random);
        add_number(job, data, data->dtype == DTYPE_F64 && i % 2 ? wide : (double)random_float_bits(random));
    }
}

static void fill_integers(Job *job, Data *data, Random *random) {
    for (int k = 0; k < 64; k++)
        for (int64_t away = -2; away <= 2; away++) {
            add_bits(job, data, ((uint64_t)1 << k) + (uint64_t)away);
            add_bits(job, data, 0 - ((uint64_t)1 << k) + (uint64_t)away);
        }
    for (int i = 0; i < 4000; i++) add_bits(job, data, random_bits(random) >> random_below(random, 64));
    for (int i = 0; i < 1000; i++) add_bits(job, data, 0 - (random_bits(random) >> random_below(random, 64)));
}

static Data make_data(Job *job, DType dtype, Random *random) {
    Data data = {.dtype = dtype};
    if (dtype == DTYPE_BOOL) {
        for (uint64_t i = 0; i < 300; i++) add_bits(job, &data, random_bits(random) & 1);
    } else if (bytes_of(dtype) <= 2) {
        for (uint64_t code = 0; code < (uint64_t)1 << 8 * bytes_of(dtype); code++) add_bits(job, &data, code);
    } else if (is_float(dtype)) {
        fill_floats(job, &data, random);
    } else {
        fill_integers(job, &data, random);
    }
    return data;
}

/* ---- what must come out ---- */

/* An integer as a float, rounded once: through the double nearest to it, whose last bit says that digits were lost. */
static void store_integer(DType to, void *element, int64_t value) {
    double near = (double)value;
    if (to == DTYPE_F64 || (long double)near == (long double)value) {
        ir_store_float(to, element, near);
        return;
    }
    bool beyond = ((long double)near > (long double)value) == (value > 0);
    uint64_t bits;
    if (beyond) near = nextafter(near, 0);
    memcpy(&bits, &near, sizeof bits);
    bits |= 1;
    memcpy(&near, &bits, sizeof near);
    ir_store_float(to, element, near);
}

static void convert(DType from, const void *element, DType to, void *result) {
    if (is_float(from)) {
        double value = ir_load_float(from, element);
        if (is_float(to))
            ir_store_float(to, result, value);
        else
            ir_store_int(to, result, ir_float_to_int(to, value));
    } else {
        int64_t value = ir_load_int(from, element);
        if (is_float(to))
            store_integer(to, result, value);
        else
            ir_store_int(to, result, value);
    }
}

/* Of NaNs only that they are. */
static bool same_element(DType dtype, const void *a, const void *b) {
    if (memcmp(a, b, bytes_of(dtype)) == 0) return true;
    return is_float(dtype) && isnan(ir_load_float(dtype, a)) && isnan(ir_load_float(dtype, b));
}

/* ---- a dtype into all others ---- */

enum { OUTPUTS = 2 * DTYPE_COUNT, BORDER = 64 };

static const char *graph_text(Job *job, DType from) {
    Text text = ir_text(job);
    ir_text_format(&text, "graph: from_%s\ndims: {N: any}\ninputs: {x: \"%s[N]\"}\nnodes:\n", ir_dtype(from)->name,
                   ir_dtype(from)->name);
    for (unsigned to = 0; to < DTYPE_COUNT; to++)
        ir_text_format(&text, "  c_%s: cast(x, %s)\n", ir_dtype((DType)to)->name, ir_dtype((DType)to)->name);
    ir_text_put(&text, "outputs:\n");
    for (unsigned to = 0; to < DTYPE_COUNT; to++)
        ir_text_format(&text, "  s_%s: {dtype: %s, of: x}\n", ir_dtype((DType)to)->name, ir_dtype((DType)to)->name);
    for (unsigned to = 0; to < DTYPE_COUNT; to++)
        ir_text_format(&text, "  c_%s: %s\n", ir_dtype((DType)to)->name, ir_dtype((DType)to)->name);
    return ir_text_string(&text);
}

typedef struct Memory {
    char *input;
    char *output[OUTPUTS]; /* count elements behind BORDER bytes and before as many */
} Memory;

static bool check_output(const Data *data, int64_t count, DType to, const char *output, const char *what) {
    const char *elements = output + BORDER;
    size_t bytes = bytes_of(to);
    for (size_t i = 0; i < BORDER; i++)
        if ((unsigned char)output[i] != 0xee || (unsigned char)elements[(size_t)count * bytes + i] != 0xee) {
            printf("failed: %s to %s by a %s: a byte beside the output was written\n", ir_dtype(data->dtype)->name,
                   ir_dtype(to)->name, what);
            return false;
        }
    for (int64_t i = 0; i < count; i++) {
        uint64_t wanted = 0, got = 0;
        convert(data->dtype, &data->bits.at[i], to, &wanted);
        memcpy(&got, elements + (size_t)i * bytes, bytes);
        if (same_element(to, &got, &wanted)) continue;
        printf("failed: %s 0x%llx to %s by a %s: 0x%llx, must be 0x%llx\n", ir_dtype(data->dtype)->name,
               (unsigned long long)data->bits.at[i], ir_dtype(to)->name, what, (unsigned long long)got,
               (unsigned long long)wanted);
        return false;
    }
    return true;
}

static bool run_count(DeviceCase *own, const Data *data, int64_t count, const Memory *memory, size_t shift) {
    void *tensors[1 + OUTPUTS];
    size_t bytes = bytes_of(data->dtype);
    tensors[0] = memory->input + shift * bytes;
    for (int64_t i = 0; i < count; i++) memcpy((char *)tensors[0] + (size_t)i * bytes, &data->bits.at[i], bytes);
    for (unsigned o = 0; o < OUTPUTS; o++) {
        size_t each = bytes_of((DType)(o % DTYPE_COUNT));
        memset(memory->output[o], 0xee, ((size_t)count + shift) * each + 2 * BORDER);
        tensors[1 + o] = memory->output[o] + BORDER + shift * each;
    }
    ng_args args = {.size = sizeof args, .tensors = tensors, .dims = &count};
    ng_report report = {.size = sizeof report};
    Status status = rt_program_run(own->program, NULL, &args, false, 0, &report);
    if (status) printf("failed: from %s: %s\n", ir_dtype(data->dtype)->name, report.why.bytes ? report.why.bytes : "?");
    ng_text_free(&report.why);
    bool passed = !status;
    for (unsigned o = 0; o < OUTPUTS && passed; o++)
        passed = check_output(data, count, (DType)(o % DTYPE_COUNT), (char *)tensors[1 + o] - BORDER,
                              o < DTYPE_COUNT ? "store" : "cast");
    return passed;
}

static bool run_dtype(DeviceCase *own, const Data *data, const Devices *devices, uint64_t *elements) {
    static const int64_t few[] = {0, 1, 2, 3, 7, 9, 15, 31, 33};
    Memory memory = {.input = malloc((data->bits.count + 1) * 8)};
    bool passed = memory.input != NULL;
    for (unsigned o = 0; o < OUTPUTS; o++) {
        memory.output[o] = malloc((data->bits.count + 1) * 8 + 2 * BORDER);
        passed = passed && memory.output[o];
    }
    for (uint32_t d = 0; d < devices->count && passed; d++) {
        device_case_move(own, devices->at[d]);
        for (size_t shift = 0; shift < 2 && passed; shift++) {
            passed = run_count(own, data, data->bits.count, &memory, shift);
            *elements += (uint64_t)data->bits.count * OUTPUTS;
            for (size_t k = 0; k < sizeof few / sizeof *few && passed; k++)
                passed = run_count(own, data, few[k], &memory, shift);
        }
    }
    free(memory.input);
    for (unsigned o = 0; o < OUTPUTS; o++) free(memory.output[o]);
    return passed;
}

int main(int argc, char **argv) {
    Devices devices;
    if (!devices_open(&devices, argc, argv)) return 3;
    Job *job = ir_job_create(NULL);
    Random random = {random_seed()};
    DeviceCase *cases[DTYPE_COUNT];
    uint32_t passed = 0;
    uint64_t elements = 0;
    for (unsigned from = 0; from < DTYPE_COUNT; from++) {
        cases[from] = device_case_create(graph_text(job, (DType)from), NULL);
        if (cases[from]->status) printf("failed: %s\n", ir_job_report(cases[from]->job));
    }
    if (device_cases_build(cases, DTYPE_COUNT, &devices))
        for (unsigned from = 0; from < DTYPE_COUNT; from++) {
            Data data = make_data(job, (DType)from, &random);
            passed += !cases[from]->status && run_dtype(cases[from], &data, &devices, &elements);
        }
    for (unsigned from = 0; from < DTYPE_COUNT; from++) device_case_free(cases[from], &devices);
    printf("# %llu elements from %d dtypes into all, on %s\n", (unsigned long long)elements, DTYPE_COUNT,
           devices.at[0]->ops->name);
    devices_close(&devices);
    ir_job_free(job);
    printf("[  PASSED  ] %u test(s).\n", passed);
    if (passed < DTYPE_COUNT) printf("[  FAILED  ] %u test(s)\n", DTYPE_COUNT - passed);
    return passed < DTYPE_COUNT;
}
