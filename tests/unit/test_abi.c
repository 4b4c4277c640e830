/* What the shared library exports: the functions of normgen.h and nothing else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* the sanitizer adds names of its own */
#else
#define SANITIZED 0
#endif

enum { MOST = 256 };

typedef struct Names {
    char *at[MOST];
    int count;
} Names;

static void add(Names *names, const char *name, size_t count) {
    assert_true(names->count < MOST);
    names->at[names->count++] = strndup(name, count);
}

static int has(const Names *names, const char *name) {
    for (int i = 0; i < names->count; i++)
        if (!strcmp(names->at[i], name)) return 1;
    return 0;
}

static char *read_all(FILE *file) {
    char *text = NULL;
    size_t count = 0;
    ssize_t got = getdelim(&text, &count, 0, file);
    assert_true(got > 0);
    return text;
}

/* Each NG_API declaration names its function before its first parenthesis. */
static void read_header(Names *names) {
    FILE *file = fopen("runtime/normgen.h", "r");
    assert_non_null(file);
    char *text = read_all(file);
    fclose(file);
    for (const char *at = text; (at = strstr(at, "\nNG_API ")); at++) {
        const char *stop = strchr(at, '('), *start = stop;
        while (isalnum((unsigned char)start[-1]) || start[-1] == '_') start--;
        add(names, start, (size_t)(stop - start));
    }
    free(text);
}

static void read_exports(Names *names) {
    const char *build = getenv("BUILD");
    char *command = NULL;
    assert_true(asprintf(&command, "nm -D --defined-only --format=posix %s/libnormgen.so", build ? build : "build") >
                0);
    FILE *file = popen(command, "r");
    assert_non_null(file);
    char *text = read_all(file);
    assert_int_equal(pclose(file), 0);
    for (char *line = text; *line; line += strcspn(line, "\n") + 1)
        if (strncmp(line, "__", 2) != 0 || !SANITIZED) add(names, line, strcspn(line, " @"));
    free(text);
    free(command);
}

static void drop(Names *names) {
    for (int i = 0; i < names->count; i++) free(names->at[i]);
}

static void test_exports(void **state) {
    Names declared = {.count = 0}, exported = {.count = 0};
    (void)state;
    read_header(&declared);
    read_exports(&exported);
    assert_true(declared.count > 20);
    for (int i = 0; i < exported.count; i++)
        if (!has(&declared, exported.at[i])) fail_msg("%s is exported and not in normgen.h", exported.at[i]);
    for (int i = 0; i < declared.count; i++)
        if (!has(&exported, declared.at[i])) fail_msg("%s is in normgen.h and not exported", declared.at[i]);
    print_message("# %d functions exported\n", exported.count);
    drop(&declared);
    drop(&exported);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exports)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
