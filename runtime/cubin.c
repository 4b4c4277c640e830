/* What a cubin says of its kernels. In: the bytes, an ELF file of 64 bits. Out: registers and stack frame (spills lie
 * there) of one kernel. Every offset is checked against the size, since the bytes may come from a file. */
#include "runtime/device.h"

#include <elf.h>
#include <string.h>

typedef struct Cubin {
    const char *bytes;
    size_t count;
    Elf64_Ehdr header;
} Cubin;

static bool in_range(const Cubin *cubin, uint64_t offset, uint64_t bytes) {
    return offset <= cubin->count && bytes <= cubin->count - offset;
}

static bool section_at(const Cubin *cubin, uint64_t index, Elf64_Shdr *section) {
    if (index >= cubin->header.e_shnum) return false;
    uint64_t offset = cubin->header.e_shoff + index * sizeof *section;
    if (offset < cubin->header.e_shoff || !in_range(cubin, offset, sizeof *section)) return false;
    memcpy(section, cubin->bytes + offset, sizeof *section);
    return section->sh_type == SHT_NOBITS || in_range(cubin, section->sh_offset, section->sh_size);
}

static bool name_is(const Cubin *cubin, const Elf64_Shdr *strings, uint64_t name, const char *prefix,
                    const char *rest) {
    if (name >= strings->sh_size) return false;
    const char *text = cubin->bytes + strings->sh_offset + name;
    size_t left = (size_t)(strings->sh_size - name), head = strlen(prefix), tail = strlen(rest) + 1;
    return head + tail <= left && !memcmp(text, prefix, head) && !memcmp(text + head, rest, tail);
}

enum { FRAME_SIZE = 0x11, REGISTER_COUNT = 0x2f }; /* EIATTR: symbol, number */

/* .nv.info holds records: format, attribute, and in format 4 a 16-bit size with that many bytes. */
static bool attribute_of(const Cubin *cubin, const Elf64_Shdr *section, int attribute, uint32_t symbol, int *number) {
    const char *at = cubin->bytes + section->sh_offset, *end = at + section->sh_size;
    while (end - at >= 4) {
        int format = (unsigned char)at[0], kind = (unsigned char)at[1];
        uint16_t size;
        memcpy(&size, at + 2, sizeof size);
        at += 4;
        if (format != 4) continue;
        if (end - at < size) return false;
        uint32_t pair[2] = {0, 0};
        if (size >= sizeof pair) memcpy(pair, at, sizeof pair);
        if (kind == attribute && size >= sizeof pair && pair[0] == symbol) {
            *number = (int)pair[1];
            return true;
        }
        at += size;
    }
    return false;
}

static bool find_symbol(const Cubin *cubin, const Elf64_Shdr *table, const char *kernel, uint32_t *symbol) {
    Elf64_Shdr strings;
    if (!section_at(cubin, table->sh_link, &strings)) return false;
    for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym row;
        memcpy(&row, cubin->bytes + table->sh_offset + i * sizeof row, sizeof row);
        if (ELF64_ST_TYPE(row.st_info) == STT_FUNC && name_is(cubin, &strings, row.st_name, "", kernel)) {
            *symbol = (uint32_t)i;
            return true;
        }
    }
    return false;
}

bool rt_cubin_facts(const char *bytes, size_t count, const char *kernel, RtFacts *facts) {
    Cubin cubin = {.bytes = bytes, .count = count};
    if (count < sizeof cubin.header) return false;
    memcpy(&cubin.header, bytes, sizeof cubin.header);
    if (memcmp(cubin.header.e_ident, ELFMAG, SELFMAG) || cubin.header.e_ident[EI_CLASS] != ELFCLASS64) return false;
    Elf64_Shdr names, section, info = {0};
    if (!section_at(&cubin, cubin.header.e_shstrndx, &names)) return false;
    uint32_t symbol = 0;
    bool found = false;
    *facts = (RtFacts){0};
    for (uint64_t i = 0; i < cubin.header.e_shnum; i++) {
        if (!section_at(&cubin, i, &section)) return false;
        if (section.sh_type == SHT_SYMTAB) found = find_symbol(&cubin, &section, kernel, &symbol);
        if (name_is(&cubin, &names, section.sh_name, ".nv.info", "")) info = section;
    }
    return found && attribute_of(&cubin, &info, FRAME_SIZE, symbol, &facts->local_bytes) &&
           attribute_of(&cubin, &info, REGISTER_COUNT, symbol, &facts->registers);
}
