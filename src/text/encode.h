/* encode.h - converts texts to ids, including special tokens. */
#ifndef TEXT_ENCODE_H
#define TEXT_ENCODE_H

#include "base/str.h"
#include "text/tokenizer.h"

struct bpe_long;

/* The state of one thread that encodes texts. */
struct encode {
    const struct tokenizer *t;
    bool special; /* the text of a special token becomes this token; false: it is plain text */
    struct encoder *encoder;
};

/* `w` belongs to the tables of `t` (bpe_long.h); both must outlive `e`. `cache_bits`: encoder.h. */
void encode_open(struct encode *e, const struct tokenizer *t, struct bpe_long *w, bool special,
                 int cache_bits);
void encode_close(struct encode *e);
/* Appends the ids of a text, little-endian, bpe_id_bytes bytes each. ENCODER_PADDING (encoder.h)
 * bytes after the text must be readable. */
void encode_append(struct encode *e, const char *text, int64_t bytes, struct str *ids);
/* Reads id i of the bytes that encode_append wrote. */
uint32_t encode_id(const struct tokenizer *t, const struct str *ids, int64_t i);

/* The last place at which the beginning of a longer text can be cut so that the ids of both parts
 * are the ids of the whole; 0: there is none. */
int64_t encode_cut(const struct tokenizer *t, bool special, const char *text, int64_t bytes);

#endif
