/* Data sets of byte pair tokens. meta.json contains the tokenizer in Hugging Face's format. */
#include "data/kind.h"
#include "text/bpe_long.h"
#include "text/encode.h"
#include "text/encoder.h"

#include <string.h>

enum { SMALL_CACHE = 8 };

/* Encodes a prompt; the text of a special token becomes this token. */
static enum status encode(const struct vocabulary *v, const char *text, struct arena *a,
                          int32_t **ret_ids, int64_t *ret_count)
{
    int64_t bytes = (int64_t)strlen(text);
    char *padded = arena_alloc(a, bytes + ENCODER_PADDING);
    memcpy(padded, text, (size_t)bytes);
    struct bpe_long *w = bpe_long_open(&v->tokenizer->bpe);
    struct encode e;
    struct str ids = {};
    encode_open(&e, v->tokenizer, w, true, SMALL_CACHE);
    encode_append(&e, padded, bytes, &ids);
    *ret_count = ids.len / bpe_id_bytes(&v->tokenizer->bpe);
    *ret_ids = ARENA_NEW(a, int32_t, *ret_count + 1);
    for (int64_t i = 0; i < *ret_count; i++)
        (*ret_ids)[i] = (int32_t)encode_id(v->tokenizer, &ids, i);
    encode_close(&e);
    bpe_long_close(w);
    str_release(&ids);
    return ST_OK;
}

static void of_tokenizer(struct vocabulary *ret, const struct tokenizer *t)
{
    *ret = (struct vocabulary){.kind = &data_byte_pairs, .size = t->bpe.ids, .tokenizer = t};
}

const struct data_kind data_byte_pairs = {
    .name = "bpe",
    .encode = encode,
    .of_tokenizer = of_tokenizer,
};
