/* bpe.h - the ladder `bpe`: text to GPT-2's ids, each rung with one more idea.
 *
 * A rung is a file below cpu/, as those of other ladders (lab/lab.h), but its problem is a text:
 * in[0] is a struct bpe_input, out a struct bpe_output, n[0] the bytes of the text. The first rung
 * defines the ids; all others must yield the same before and after they are timed. */
#ifndef LAB_BPE_BPE_H
#define LAB_BPE_BPE_H

#include "lab/lab.h"
#include "measure/rounds.h"
#include "text/tokenizer.h"

enum { BPE_CACHE_BITS = 18, BPE_RUNGS = 8 };

struct bpe_input {
    const struct bpe *bpe;
    struct bpe_walk *walk; /* text/walk.h: for pieces that are too long for simple merges */
    const char *text;
};

struct bpe_output {
    int64_t count;
    uint32_t *id;      /* room for a few more than the bytes of the text */
    uint32_t *scratch; /* ranks of one piece */
    /* What is in the caches of words is removed before each call, unless asked otherwise. */
    void *small_pages, *large_pages;
    struct encoder *encoder; /* of the last rung, whose ids are here as they go to a file */
    void *packed;
};

struct bpe_options {
    const struct tokenizer *tokenizer;
    const char *text;
    int64_t bytes; /* after the text, STREAM_PADDING (text/stream.h) more can be read */
    bool warm;     /* the caches keep the words of the call before */
    int samples;
    double limit_ms;
    void (*each)(void *user, double share, const char *what);
    void *user;
};

struct bpe_result {
    const struct lab_rung *rung;
    bool wrong;
    struct contender time;
    struct judgement previous, first;
    double rate; /* bytes of text per second */
};

struct bpe_run {
    const struct bpe_options *options;
    struct bpe_result result[BPE_RUNGS];
    int64_t ids, pieces;
    int wrong; /* rungs with other ids */
};

/* The rungs; they end with one without a name. */
extern const struct lab_rung bpe_rungs[];

/* ST_INTERRUPTED if Ctrl-C ended it before all rungs had a sample. */
enum status bpe_run(const struct bpe_options *o, struct bpe_run *ret, struct arena *a);

#endif
