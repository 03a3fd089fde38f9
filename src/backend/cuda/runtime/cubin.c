/* A cubin has a section .nv.info with records about all of its kernels, and for each kernel that
 * uses shared memory a section .nv.shared.NAME. From compute capability 9.0 on these sections begin
 * with the memory that the system reserves in each block; such a cubin also has a section
 * .nv.shared.reserved.0. A record has four bytes: a format, an attribute, and a size or value.
 * Records of format SIZED are followed by `size` bytes of data. */
#include "backend/cuda/runtime/cubin.h"

#include <elf.h>
#include <string.h>

enum { SIZED = 4, REGISTER_COUNT = 0x2f, SYSTEM_BYTES = 1 << 10 };

struct cubin {
    const char *image;
    int64_t bytes;
    Elf64_Ehdr head;
};

/* Copies item `i` of a table at `offset`, whose items have `size` bytes. Returns false if the item
 * is outside the image. */
static bool item(const struct cubin *c, uint64_t offset, uint64_t i, size_t size, void *ret)
{
    uint64_t bytes = (uint64_t)c->bytes;
    if (offset > bytes || i >= (bytes - offset) / size) return false;
    memcpy(ret, c->image + offset + i * size, size);
    return true;
}

static bool section_at(const struct cubin *c, unsigned i, Elf64_Shdr *ret)
{
    return i < c->head.e_shnum && item(c, c->head.e_shoff, i, sizeof *ret, ret);
}

/* Whether the string at `at` in a section of strings is prefix + name. */
static bool is_named(const struct cubin *c, unsigned strings, uint32_t at, const char *prefix,
                     const char *name)
{
    Elf64_Shdr s;
    size_t n = strlen(prefix), all = n + strlen(name) + 1;
    if (!section_at(c, strings, &s) || s.sh_offset > (uint64_t)c->bytes) return false;
    uint64_t left = (uint64_t)c->bytes - s.sh_offset;
    if (at > left || left - at < all) return false;
    const char *text = c->image + s.sh_offset + at;
    return !memcmp(text, prefix, n) && !memcmp(text + n, name, all - n);
}

static bool find_section(const struct cubin *c, const char *prefix, const char *name,
                         Elf64_Shdr *ret)
{
    for (unsigned i = 0; section_at(c, i, ret); i++)
        if (is_named(c, c->head.e_shstrndx, ret->sh_name, prefix, name)) return true;
    return false;
}

static bool is_symbol(const struct cubin *c, uint32_t index, const char *name)
{
    Elf64_Shdr symbols;
    Elf64_Sym symbol;
    return find_section(c, ".symtab", "", &symbols) &&
           item(c, symbols.sh_offset, index, sizeof symbol, &symbol) &&
           is_named(c, symbols.sh_link, symbol.st_name, "", name);
}

static bool find_registers(const struct cubin *c, const char *entry, int *ret)
{
    Elf64_Shdr info;
    if (!find_section(c, ".nv.info", "", &info)) return false;
    struct {
        uint8_t format, attribute;
        uint16_t size;
        uint32_t data[2];
    } r;
    for (uint64_t at = 0; at < info.sh_size; at += 4u + (r.format == SIZED ? r.size : 0u)) {
        r.data[0] = r.data[1] = 0;
        if (!item(c, info.sh_offset + at, 0, 4, &r)) return false;
        bool counts = r.format == SIZED && r.attribute == REGISTER_COUNT && r.size == sizeof r.data;
        if (!counts || !item(c, info.sh_offset + at + 4, 0, sizeof r.data, r.data) ||
            !is_symbol(c, r.data[0], entry))
            continue;
        *ret = (int)r.data[1];
        return true;
    }
    return false;
}

bool cubin_kernel(const char *image, int64_t bytes, const char *entry, struct cubin_kernel *ret)
{
    struct cubin c = {.image = image, .bytes = bytes};
    Elf64_Shdr last, shared, reserved;
    if (!item(&c, 0, 0, sizeof c.head, &c.head) || memcmp(c.head.e_ident, ELFMAG, SELFMAG) != 0 ||
        c.head.e_machine != EM_CUDA)
        return false;
    /* Reading the last section proves that the table of sections is not truncated. In a truncated
     * table the section of shared memory might be missing. */
    if (!section_at(&c, c.head.e_shnum - 1u, &last) || !find_registers(&c, entry, &ret->registers))
        return false;
    ret->static_bytes = 0;
    if (!find_section(&c, ".nv.shared.", entry, &shared)) return true;
    ret->static_bytes = (int64_t)shared.sh_size;
    if (find_section(&c, ".nv.shared.reserved.", "0", &reserved))
        ret->static_bytes = max_i64(ret->static_bytes - SYSTEM_BYTES, 0);
    return true;
}
