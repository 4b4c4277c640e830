/* An NVRTC that compiles nothing, for tests on the driver that only counts (cuda.c) where the real one cannot be used.
 * In: a device text and -DNG_ONLY=n. Out: an ELF header and, for each kernel that the text then has, the name of its
 * section of code, which is all that the driver looks for. Built by the test into a library whose soname is
 * libnvrtc.so.13. Any number of threads may compile at once, each its own program. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <ctype.h>
#include <elf.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NVRTC_OUT_OF_MEMORY = 1, NVRTC_INVALID_OPTION = 5 };

typedef struct Program {
    char *text, *image;
    size_t count; /* of the image's bytes */
} Program;

#define NVRTC(name, ...)                                                                                               \
    int name(__VA_ARGS__);                                                                                             \
    int name(__VA_ARGS__)

NVRTC(nvrtcCreateProgram, Program **program, const char *text, const char *name, int headers,
      const char *const *header_texts, const char *const *header_names) {
    (void)name, (void)headers, (void)header_texts, (void)header_names;
    *program = calloc(1, sizeof **program);
    if (*program) (*program)->text = strdup(text);
    return *program && (*program)->text ? 0 : NVRTC_OUT_OF_MEMORY;
}

NVRTC(nvrtcDestroyProgram, Program **program) {
    free((*program)->text);
    free((*program)->image);
    free(*program);
    *program = NULL;
    return 0;
}

/* The kernel that the line begins, or a length of 0: the word before the first parenthesis that is not the launch
 * bounds'. It may stand on the next line. */
static const char *kernel_of(const char *line, size_t count, size_t *length) {
    static const char bounds[] = "__launch_bounds__";
    const char *at = memmem(line, count, "__global__", 10);
    if (!at) at = memmem(line, count, "NG_KERNEL", 9);
    *length = 0;
    while (at && *line != '#' && (at = strchr(at, '('))) {
        while (*length < (size_t)(at - line) &&
               (isalnum((unsigned char)at[-1 - (ptrdiff_t)*length]) || at[-1 - (ptrdiff_t)*length] == '_'))
            ++*length;
        if (*length != strlen(bounds) || strncmp(at - *length, bounds, *length) != 0) return at - *length;
        *length = 0;
        at = strchr(at, ')');
    }
    return line;
}

/* only: the number that NG_ONLY has, or NULL. A kernel stands between `#if !defined(NG_ONLY) || NG_ONLY == n` and
 * `#endif`. */
static void write_image(FILE *image, const char *text, const char *only) {
    static const char guard[] = "#if !defined(NG_ONLY) || NG_ONLY == ";
    int wanted = 1;
    for (const char *line = text; *line;) {
        const size_t count = strcspn(line, "\n");
        if (!strncmp(line, guard, strlen(guard)))
            wanted = !only || strtol(line + strlen(guard), NULL, 10) == strtol(only, NULL, 10);
        else if (!strncmp(line, "#endif", 6))
            wanted = 1;
        size_t length;
        const char *kernel = kernel_of(line, count, &length);
        if (wanted && length) fprintf(image, ".text.%.*s%c", (int)length, kernel, 0);
        line += count + (line[count] == '\n');
    }
}

NVRTC(nvrtcCompileProgram, Program *program, int count, const char *const *options) {
    static const char define[] = "--define-macro=NG_ONLY=";
    const char *only = NULL;
    for (int i = 0; i < count; i++)
        if (!strncmp(options[i], define, strlen(define))) only = options[i] + strlen(define);
    FILE *image = open_memstream(&program->image, &program->count);
    if (!image) return NVRTC_OUT_OF_MEMORY;
    Elf64_Ehdr head = {.e_ident = ELFMAG};
    fwrite(&head, sizeof head, 1, image);
    write_image(image, program->text, only);
    if (fclose(image)) return NVRTC_OUT_OF_MEMORY;
    head.e_shoff = program->count; /* where the image ends */
    memcpy(program->image, &head, sizeof head);
    return 0;
}

NVRTC(nvrtcGetCUBINSize, Program *program, size_t *count) { return *count = program->count, 0; }
NVRTC(nvrtcGetCUBIN, Program *program, char *bytes) { return memcpy(bytes, program->image, program->count), 0; }
NVRTC(nvrtcGetPTXSize, Program *program, size_t *count) { return (void)program, (void)count, NVRTC_INVALID_OPTION; }
NVRTC(nvrtcGetPTX, Program *program, char *bytes) { return (void)program, (void)bytes, NVRTC_INVALID_OPTION; }
NVRTC(nvrtcGetProgramLogSize, Program *program, size_t *count) { return (void)program, *count = 1, 0; }
NVRTC(nvrtcGetProgramLog, Program *program, char *log) { return (void)program, *log = 0, 0; }

const char *nvrtcGetErrorString(int result);
const char *nvrtcGetErrorString(int result) { return result == NVRTC_OUT_OF_MEMORY ? "out of memory" : "not faked"; }
