/* bpe.h - the ladder `bpe`: converts text to GPT-2's token ids, each rung with one more idea.
 *
 * As in other ladders (lab/lab.h), a rung is a file in the folder cpu, but the members of struct
 * lab_call have other meanings: in[0] is a struct bpe_input, out a struct bpe_output, n[0] the
 * bytes of the text. The first rung defines the ids; all other rungs are compared with it before
 * and after they are timed. */
#ifndef LAB_BPE_BPE_H
#define LAB_BPE_BPE_H

#include "lab/lab.h"
#include "measure/rounds.h"
#include "text/tokenizer.h"

enum { BPE_CACHE_BITS = 18, BPE_RUNGS = 8 };

struct bpe_input {
    const struct bpe *bpe;
    struct bpe_long *bpe_long; /* text/bpe_long.h: for pieces that are too long for simple merges */
    const char *text;
};

struct bpe_output {
    int64_t count;
    uint32_t *id;      /* space for ENCODER_PADDING more ids than the text has bytes */
    uint32_t *scratch; /* ranks of one piece */
    /* The cache of words, in 4 KiB and in 2 MiB pages; emptied before each call unless `warm`. */
    void *small_pages, *large_pages;
    struct encoder *encoder; /* for the last rung */
    void *packed;            /* ids of the last rung, in the format of a token file */
};

struct bpe_options {
    const struct tokenizer *tokenizer;
    const char *text;
    int64_t bytes; /* of the text; STREAM_PADDING (text/stream.h) bytes more must be readable */
    bool warm;     /* the caches keep the words of the previous call */
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
    int wrong; /* number of rungs with wrong ids */
};

/* Ends with a rung without a name. */
extern const struct lab_rung bpe_rungs[];

/* Runs the ladder. ST_INTERRUPTED: Ctrl-C came before all rungs had a sample. */
enum status bpe_run(const struct bpe_options *o, struct bpe_run *ret, struct arena *a);

#endif
