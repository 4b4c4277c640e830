/* safetensors: what is written reads back; every way in which a file can lie is refused with its place. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/cli/safetensors.h"
#include "runtime/cli/text.h"

/* A file of this header and so many bytes of data; the length field says `claimed`, or the truth for -1. */
static Buf make_file(const char *header, size_t data_bytes, int64_t claimed) {
    Buf file = {0};
    uint64_t length = claimed < 0 ? strlen(header) : (uint64_t)claimed;
    for (int i = 0; i < 8; i++) buf_bytes(&file, &(char){(char)(length >> (8 * i) & 0xff)}, 1);
    buf_put(&file, header);
    for (size_t i = 0; i < data_bytes; i++) buf_bytes(&file, &(char){(char)i}, 1);
    return file;
}

/* Parses a copy of exactly that size, so that a sanitizer sees a read beyond it. */
static bool parse_exact(const Buf *file, size_t count, StFile *parsed, char **why) {
    char *copy = malloc(count ? count : 1);
    assert_non_null(copy);
    memcpy(copy, file->bytes, count);
    bool fine = st_parse(copy, count, parsed, why);
    if (fine) st_close(parsed);
    free(copy);
    return fine;
}

static void refuse(const char *header, size_t data_bytes, int64_t claimed, const char *words) {
    Buf file = make_file(header, data_bytes, claimed);
    StFile parsed;
    char *why = NULL;
    bool fine = parse_exact(&file, file.count, &parsed, &why);
    if (fine || !why || !strstr(why, words)) print_error("%s\n  gave: %s\n", header, fine ? "accepted" : why);
    assert_false(fine);
    assert_non_null(why);
    assert_non_null(strstr(why, words));
    free(why);
    free(file.bytes);
}

static void accept(const char *header, size_t data_bytes, size_t tensors) {
    Buf file = make_file(header, data_bytes, -1);
    StFile parsed;
    char *why = NULL;
    if (!st_parse(file.bytes, file.count, &parsed, &why)) fail_msg("%s: %s", header, why);
    assert_int_equal(parsed.count, tensors);
    st_close(&parsed);
    free(file.bytes);
}

static void test_accepts(void **state) {
    (void)state;
    accept("{}", 0, 0);
    accept("{}   \n", 0, 0);
    accept("{\"__metadata__\":{\"a\":\"b\"}}", 0, 0);
    accept("{\"x\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]}}", 8, 1);
    accept("{\"x\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, 1);
    accept("{\"e\":{\"dtype\":\"F32\",\"shape\":[0,9007199254740992],\"data_offsets\":[4,4]},"
           "\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
           4, 2);
    accept("{\"x\":{\"dtype\":\"F8_E8M0\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3, 1);
    accept("{\"x\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, 1);
    accept("{\"x\":{\"dtype\":\"U32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, 1);
    accept("{\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[2,5]},"
           "\"a\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[0,2]}}",
           5, 2);
}

static void test_refuses_headers(void **state) {
    (void)state;
    refuse("{}", 0, 3, "claims 3 bytes");
    refuse("{}", 0, INT64_MAX, "at most 100,000,000");
    refuse("{}", 0, 100000001, "at most 100,000,000");
    refuse("", 0, 0, "does not begin with '{'");
    refuse("{\"x\\u0000y\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, -1, "holds a NUL");
    refuse("[]", 0, -1, "does not begin with '{'");
    refuse(" {}", 0, -1, "does not begin with '{'");
    refuse("{\"x\":", 0, -1, "not JSON");
    refuse("{\"x\":1,}", 0, -1, "not JSON, at its byte 7");
    refuse("{}{}", 0, -1, "goes on after its JSON value, at its byte 2");
    refuse("{}", 3, -1, "3 bytes after the last tensor");
}

static void test_refuses_entries(void **state) {
    (void)state;
    static const struct {
        const char *entry;
        size_t data_bytes;
        const char *words;
    } cases[] = {
        {"7", 0, "not an object"},
        {"{\"shape\":[1],\"data_offsets\":[0,4]}", 4, "no \"dtype\""},
        {"{\"dtype\":\"F32\",\"data_offsets\":[0,4]}", 4, "no \"shape\""},
        {"{\"dtype\":\"F32\",\"shape\":[1]}", 4, "no \"data_offsets\""},
        {"{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", 4, "two entries \"dtype\""},
        {"{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}", 4, "unknown dtype \"F33\""},
        {"{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}", 4, "dtype is not a string"},
        {"{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}", 4, "shape is not a list"},
        {"{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}", 4, "dim 0 of its shape"},
        {"{\"dtype\":\"F32\",\"shape\":[1,-1],\"data_offsets\":[0,4]}", 4, "dim 1 of its shape"},
        {"{\"dtype\":\"F32\",\"shape\":[\"1\"],\"data_offsets\":[0,4]}", 4, "dim 0 of its shape"},
        {"{\"dtype\":\"F32\",\"shape\":[1e300],\"data_offsets\":[0,4]}", 4, "dim 0 of its shape"},
        {"{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}", 4, "overflows"},
        {"{\"dtype\":\"F32\",\"shape\":[4503599627370496,512],\"data_offsets\":[0,0]}", 0, "overflows"},
        {"{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}", 4, "ask for 8 bytes, its data_offsets span 4"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}", 4, "run backwards"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}", 4, "not two integers"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}", 4, "not two integers"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0.5,4.5]}", 4, "not two integers"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}", 4, "not two integers"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":{\"a\":0}}", 4, "not two integers"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", 3, "ends at byte 4 of the data, which has 3"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}", 8, "a hole before it: bytes 0 to 4"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", 9, "5 bytes after the last tensor"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Buf header = {0};
        buf_format(&header, "{\"x\":%s}", cases[i].entry);
        refuse(header.bytes, cases[i].data_bytes, -1, cases[i].words);
        free(header.bytes);
    }
}

static void test_refuses_pairs(void **state) {
    (void)state;
    refuse("{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
           "\"y\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]}}",
           6, -1, "tensor \"y\": its bytes overlap");
    refuse("{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
           "\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
           8, -1, "tensor \"x\": it is there twice");
    refuse("{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
           "\"y\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[6,10]}}",
           10, -1, "tensor \"y\": there is a hole before it");
    refuse("{\"a\\u001b[2J\":7}", 0, -1, "tensor \"a\\x1b[2J\"");
}

/* Cut anywhere, a file is refused: never read beyond, never accepted. */
static void test_refuses_cut_files(void **state) {
    (void)state;
    Buf file = make_file("{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, -1);
    for (size_t count = 0; count < file.count; count++) {
        StFile parsed;
        char *why = NULL;
        assert_false(parse_exact(&file, count, &parsed, &why));
        assert_non_null(why);
        free(why);
    }
    free(file.bytes);
}

static void test_round_trip(void **state) {
    (void)state;
    const int64_t shape[] = {2, 3};
    const StItem items[] = {
        {"y", NG_BF16, 2, shape, 12}, {"n", NG_I64, 0, shape, 8}, {"none", NG_F32, 1, (int64_t[]){0}, 0}};
    size_t bytes, again;
    char *header = st_header(items, 3, &bytes), *second = st_header(items, 3, &again);
    assert_int_equal(bytes, again);
    assert_memory_equal(header, second, bytes);
    assert_int_equal(bytes % 8, 0);
    Buf file = {0};
    buf_bytes(&file, header, bytes);
    buf_bytes(&file, "0123456789abABCDEFGH", 20);
    StFile parsed;
    char *why = NULL;
    if (!st_parse(file.bytes, file.count, &parsed, &why)) fail_msg("%s", why);
    const StTensor *y = st_find(&parsed, "y"), *n = st_find(&parsed, "n");
    assert_non_null(y);
    assert_non_null(n);
    assert_non_null(st_find(&parsed, "none"));
    assert_null(st_find(&parsed, "x"));
    assert_int_equal(y->dtype, NG_BF16);
    assert_int_equal(y->rank, 2);
    assert_int_equal(y->shape[1], 3);
    assert_int_equal(n->rank, 0);
    assert_memory_equal(parsed.data + y->start, "0123456789ab", 12);
    assert_memory_equal(parsed.data + n->start, "ABCDEFGH", 8);
    st_close(&parsed);
    free(file.bytes);
    free(header);
    free(second);
}

static void test_opens_files(void **state) {
    (void)state;
    char path[] = "/tmp/normgen-test-XXXXXX";
    Buf file = make_file("{\"x\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,5]}}", 5, -1);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, file.bytes, file.count), file.count);
    StFile opened;
    char *why = NULL;
    assert_true(st_open(path, &opened, &why));
    assert_int_equal(opened.data[4], 4);
    st_close(&opened);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_false(st_open(path, &opened, &why));
    assert_non_null(strstr(why, "too few"));
    free(why);
    close(fd);
    unlink(path);
    assert_false(st_open(path, &opened, &why));
    assert_non_null(strstr(why, "No such file"));
    free(why);
    assert_false(st_open("/", &opened, &why));
    free(why);
    free(file.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts),           cmocka_unit_test(test_refuses_headers),
        cmocka_unit_test(test_refuses_entries),   cmocka_unit_test(test_refuses_pairs),
        cmocka_unit_test(test_refuses_cut_files), cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_opens_files),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
