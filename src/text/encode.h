/* encode.h - texts to ids and back: the tokenizer with its special tokens. */
#ifndef TEXT_ENCODE_H
#define TEXT_ENCODE_H

#include "base/str.h"
#include "text/tokenizer.h"

struct bpe_walk;

/* One thread's. */
struct encode {
    const struct tokenizer *t;
    bool special; /* texts of special tokens become these tokens; else they are text as any other */
    struct encoder *encoder;
};

/* `w` is of the tokenizer's tables (walk.h); both must outlive this. `cache_bits`: encoder.h. */
void encode_open(struct encode *e, const struct tokenizer *t, struct bpe_walk *w, bool special,
                 int cache_bits);
void encode_close(struct encode *e);
/* Appends the ids of a text as bytes, bpe_id_bytes of each, little-endian. After the text
 * ENCODER_PADDING (encoder.h) more bytes can be read. */
void encode_append(struct encode *e, const char *text, int64_t bytes, struct str *ids);
/* Id i of such bytes. */
uint32_t encode_id(const struct tokenizer *t, const struct str *ids, int64_t i);

/* The last place up to which a text, of which more follows, can be encoded alone; 0: none. */
int64_t encode_cut(const struct tokenizer *t, bool special, const char *text, int64_t bytes);

#endif
