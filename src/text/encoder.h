/* encoder.h - text to token ids: pieces (split.h), a cache of words, and merges (bpe.h).
 *
 * An encoder belongs to one thread; all share the tables. Its cache of words has a fixed size, so
 * memory does not grow with the text. Pieces longer than a word are cut where no token has the two
 * bytes side by side: nothing is ever joined across such a place. */
#ifndef TEXT_ENCODER_H
#define TEXT_ENCODER_H

#include "text/walk.h"

struct encoder;

/* `cache_bits`: the cache has 2^cache_bits words of 32 bytes, at least 4; ENCODER_CACHE is a good
 * number. The tables, which encoders may share, must outlive the encoder. */
enum { ENCODER_CACHE = 18, ENCODER_PADDING = 16 };
struct encoder *encoder_open(const struct bpe *b, struct bpe_walk *w, int cache_bits);
void encoder_close(struct encoder *e);

/* Encodes a text of `bytes` bytes, after which ENCODER_PADDING more can be read, and returns the
 * number of ids: at most `bytes`. `ret` has room for bytes + ENCODER_PADDING ids of bpe_id_bytes
 * bytes each. Any bytes are allowed. */
int64_t encoder_run(struct encoder *e, const char *text, int64_t bytes, void *ret);

/* 2 or 4: the bytes of an id, unsigned. */
static inline int bpe_id_bytes(const struct bpe *b)
{
    return b->ids <= 1 << 16 ? 2 : 4;
}

#endif
