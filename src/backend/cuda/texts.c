/* The texts of all kernels, taken in by the assembler; paths are relative to the root, where the build runs. */
#include "backend/cuda/jit.h"

#include <string.h>

#define TEXTS(F)                                                                          \
    F(attention)                                                                          \
    F(attention_f32) F(attention_plain) F(attention_grad) F(gelu) F(loss) F(matmul) F(move) F(norm) F(optimizer) F(pointwise) \
        F(reduce) F(softmax)
#define HEADERS(F) F(device) F(mma)

#define EMBED(symbol, ending)                                                                 \
    __asm__(".section .rodata\ncuda_" #symbol                                                 \
            "_first:\n.incbin \"src/backend/cuda/kernels/" #symbol ending "\"\ncuda_" #symbol \
            "_last:\n.byte 0\n.previous\n");                                                  \
    extern const char cuda_##symbol##_first[], cuda_##symbol##_last[];
#define EMBED_TEXT(symbol)   EMBED(symbol, ".cu")
#define EMBED_HEADER(symbol) EMBED(symbol, ".cuh")
TEXTS(EMBED_TEXT)
HEADERS(EMBED_HEADER)

#define TEXT_ROW(symbol)   {#symbol ".cu", cuda_##symbol##_first, cuda_##symbol##_last},
#define HEADER_ROW(symbol) {#symbol ".cuh", cuda_##symbol##_first, cuda_##symbol##_last},
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
