/* encoder.h - converts text to token ids with pieces (split.h), a cache of words, and merges
 * (bpe.h).
 *
 * Each thread needs its own encoder; all encoders share the tables. The cache of words has a fixed
 * size, so memory does not grow with the text. A piece too long for the cache of words is cut
 * between two bytes that no token has side by side, because no merge joins what is before and after
 * such a place. */
#ifndef TEXT_ENCODER_H
#define TEXT_ENCODER_H

#include "text/bpe_long.h"

struct encoder;

/* `cache_bits` >= 2: the cache has 2^cache_bits words of 32 bytes; ENCODER_CACHE is a good choice.
 * `b` and `w`, which encoders may share, must outlive the encoder. */
enum { ENCODER_CACHE = 18, ENCODER_PADDING = 16 };
struct encoder *encoder_open(const struct bpe *b, struct bpe_long *w, int cache_bits);
void encoder_close(struct encoder *e);

/* Encodes a text of `bytes` bytes and returns the number of ids, at most `bytes`. ENCODER_PADDING
 * bytes after the text must be readable. `ret` must have space for bytes + ENCODER_PADDING ids of
 * bpe_id_bytes bytes. The text may contain any bytes. */
int64_t encoder_run(struct encoder *e, const char *text, int64_t bytes, void *ret);

/* The bytes of an id: 2 or 4. */
static inline int bpe_id_bytes(const struct bpe *b)
{
    return b->ids <= 1 << 16 ? 2 : 4;
}

#endif
