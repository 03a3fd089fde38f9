/* tuning.h - tables of what timing decided: which variant of a matmul is fastest on one device.
 *
 * A table is made by an explicit stage (engine/tune.h) and kept in a file (docs/FORMATS.md). Compiling reads it and
 * nothing else, so a plan is a function of configuration, target and table. What a compile asks of a table is
 * noted as questions: those without an entry are what the stage measures, all of them are what `strobe plan` prints. */
#ifndef TUNING_TUNING_H
#define TUNING_TUNING_H

#include "base/arena.h"
#include "graph/op.h"
#include "tuning/target.h"

enum {
    TUNING_KEY = 160,
    TUNING_VARIANTS = 4,
    TUNING_VARIANT = 16,
    TUNING_ALGORITHM = 129, /* 128 hexadecimal digits and a zero */
    TUNING_LAUNCH = 17
};

/* One way to do the work of an entry, and what it took. */
struct tuning_candidate {
    char variant
        [TUNING_VARIANT]; /* "cublaslt", "wgmma"; "separate": a matmul and a kernel for its epilogue */
    double us, spread_us; /* median of the samples; largest less smallest */
    char algorithm
        [TUNING_ALGORITHM]; /* the library's own bytes; empty: it is none of the library's */
    /* Digest of the kernel texts and launches that were measured; empty: it is none of our own kernels. */
    char launch[TUNING_LAUNCH];
};

struct tuning_entry {
    char key[TUNING_KEY]; /* "bf16 (8192,768) x (768,2304) tb -> bf16, bias" */
    int n;                /* 0: no variant does this work */
    struct tuning_candidate candidate[TUNING_VARIANTS]; /* fastest first */
};

struct tuning {
    struct target target; /* that was measured */
    char driver[48];      /* for people */
    int n, capacity;
    struct tuning_entry *entry; /* sorted by key */
    struct arena *arena;
};

/* An empty table. */
void tuning_init(struct tuning *t, const struct target *target, struct arena *a);
/* NULL: there is none; `t` may be NULL. */
const struct tuning_entry *tuning_find(const struct tuning *t, const char *key);
/* Copies an entry into the table, its candidates sorted; an entry of that key is replaced. */
void tuning_set(struct tuning *t, const struct tuning_entry *e);
const struct tuning_candidate *tuning_candidate(const struct tuning_entry *e, const char *variant);

/* What is asked about a call: types, attributes and numerics. */
struct tuning_question {
    char key[TUNING_KEY];
    enum op op;
    union attr attr;
    struct numerics numerics;
    int n_in, n_out;
    struct type in_type[MAX_IN], out_type[MAX_OUT];
    const struct tuning_entry *entry; /* NULL: the table has none, and a default was taken */
    char taken[TUNING_VARIANT];       /* the variant that was decided on */
    char launch[TUNING_LAUNCH]; /* digest of the kernel of our own for it; empty: there is none */
};
/* In the order in which they were first asked, each key once. */
struct tuning_questions {
    int n, capacity;
    struct tuning_question *question;
    struct arena *arena;
};
/* The question of that key, NULL: it was not asked yet. */
struct tuning_question *tuning_asked(const struct tuning_questions *q, const char *key);
/* Adds one, all zero but for its key. */
struct tuning_question *tuning_ask(struct tuning_questions *q, const char *key);
/* How many have no entry. */
int tuning_missing(const struct tuning_questions *q);

/* tuning_file.c. Where the user's cache keeps the table of that device; NULL: there is no such folder. */
const char *tuning_path(const char *device, struct arena *a);
/* A file that is damaged or of another version is ST_FORMAT, with its name. The backend of the target is not set. */
enum status tuning_read(const char *path, struct tuning *ret, struct arena *a);
/* Atomically. Entries that another program of the same header wrote meanwhile stay. */
enum status tuning_write(const char *path, const struct tuning *t);
/* Whether a table holds for that target: same device, same version of the library; else *ret_why says what differs. */
bool tuning_holds(const struct tuning *t, const struct target *target, const char **ret_why);

#endif
