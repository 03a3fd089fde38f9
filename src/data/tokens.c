/* Data sets of tokens with unknown texts. A vocabulary is only a size; id 12 is shown as <12>. */
#include "data/kind.h"

#include <stdio.h>

enum { TEXT_BYTES = 16 };

static enum status encode(const struct vocabulary *v, const char *text, struct arena *a,
                          int32_t **ret_ids, int64_t *ret_count)
{
    (void)text, (void)a, (void)ret_ids, (void)ret_count;
    return fail(ST_USAGE,
                "a text cannot be turned into tokens of this vocabulary: it has %d numbers, whose "
                "texts are not known; put the tokenizer's files (vocab.json and merges.txt, or "
                "tokenizer.json) into the folder of the data set",
                v->size);
}

static void sized(struct vocabulary *ret, int size, struct arena *a)
{
    char *memory = arena_alloc(a, (int64_t)size * TEXT_BYTES);
    const char **text = ARENA_NEW(a, const char *, size);
    for (int i = 0; i < size; i++) {
        char *at = memory + (int64_t)i * TEXT_BYTES;
        snprintf(at, TEXT_BYTES, "<%d>", i);
        text[i] = at;
    }
    *ret = (struct vocabulary){.kind = &data_tokens, .size = size, .text = text};
}

const struct data_kind data_tokens = {
    .name = "tokens",
    .encode = encode,
    .sized = sized,
};
