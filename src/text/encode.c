#include "text/encode.h"

#include "text/encoder.h"
#include "text/split.h"

#include <string.h>

void encode_open(struct encode *e, const struct tokenizer *t, struct bpe_long *w, bool special,
                 int cache_bits)
{
    *e = (struct encode){t, special, encoder_open(&t->bpe, w, cache_bits)};
}

void encode_close(struct encode *e)
{
    encoder_close(e->encoder);
}

static void append_text(struct encode *e, const char *text, int64_t bytes, struct str *ids)
{
    int id_bytes = bpe_id_bytes(&e->t->bpe);
    char *to = str_reserve(ids, (bytes + ENCODER_PADDING) * id_bytes);
    ids->len += encoder_run(e->encoder, text, bytes, to) * id_bytes;
}

void encode_append(struct encode *e, const char *text, int64_t bytes, struct str *ids)
{
    const struct special_token *s;
    int id_bytes = bpe_id_bytes(&e->t->bpe);
    for (int64_t at; e->special && (at = tokenizer_find_special(e->t, text, bytes, &s)) >= 0;) {
        append_text(e, text, at, ids);
        memcpy(str_reserve(ids, id_bytes), &s->id, (size_t)id_bytes);
        ids->len += id_bytes;
        text += at + s->text.length;
        bytes -= at + s->text.length;
    }
    append_text(e, text, bytes, ids);
}

uint32_t encode_id(const struct tokenizer *t, const struct str *ids, int64_t i)
{
    uint32_t id = 0;
    int id_bytes = bpe_id_bytes(&t->bpe);
    memcpy(&id, ids->data + i * id_bytes, (size_t)id_bytes);
    return id;
}

/* Whether the cut is inside a special token. */
static bool is_inside_special(const struct tokenizer *t, const char *text, int64_t cut)
{
    for (int i = 0; i < t->specials; i++)
        for (int64_t n = 1; n < t->special[i].text.length && n <= cut; n++)
            if (!memcmp(text + cut - n, t->special[i].text.bytes,
                        (size_t)t->special[i].text.length))
                return true;
    return false;
}

int64_t encode_cut(const struct tokenizer *t, bool special, const char *text, int64_t bytes)
{
    int64_t most = bytes - (special && t->specials ? t->special[0].text.length : 0);
    int64_t cut = split_safe_cut(text, bytes, most);
    while (special && cut > 0 && is_inside_special(t, text, cut))
        cut = split_safe_cut(text, bytes, cut - 1);
    return cut;
}
