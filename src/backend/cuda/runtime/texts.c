/* The kernel sources, embedded by the assembler; paths are relative to the root. */
#include "backend/cuda/runtime/jit.h"

#include <string.h>

/* TEXTS(F) and HEADERS(F) (from the build) apply F to the folder and name of every file. */
#define EMBED(folder, symbol, kind, ending)                                                       \
    __asm__(".section .rodata\n" #kind "_" #symbol "_first:\n.incbin \"src/backend/cuda/" #folder \
            "/" #symbol ending "\"\n" #kind "_" #symbol "_last:\n.byte 0\n.previous\n");          \
    extern const char kind##_##symbol##_first[], kind##_##symbol##_last[];
#define EMBED_TEXT(folder, symbol)   EMBED(folder, symbol, text, ".cu")
#define EMBED_HEADER(folder, symbol) EMBED(folder, symbol, header, ".cuh")
TEXTS(EMBED_TEXT)
HEADERS(EMBED_HEADER)

#define TEXT_ROW(folder, symbol) {#symbol ".cu", text_##symbol##_first, text_##symbol##_last},
#define HEADER_ROW(folder, symbol) \
    {#symbol ".cuh", header_##symbol##_first, header_##symbol##_last},
static const struct {
    const char *name, *first, *last;
} texts[] = {TEXTS(TEXT_ROW) HEADERS(HEADER_ROW)};

const char *cuda_text_name(int i)
{
    return i >= 0 && i < COUNT_OF(texts) ? texts[i].name : NULL;
}

const char *cuda_text(const char *name, int64_t *ret_bytes)
{
    for (int i = 0; i < COUNT_OF(texts); i++) {
        if (strcmp(texts[i].name, name)) continue;
        *ret_bytes = texts[i].last - texts[i].first;
        return texts[i].first;
    }
    BUG_IF(true, "no kernel text %s", name);
}
