/* tuning.h - tuning tables: how long each variant of a matmul takes on one device.
 *
 * A separate stage (engine/tune.h) measures the table and keeps it in a file (docs/FORMATS.md).
 * Compiling only reads the table, so plans depend only on configuration, target and table. Each
 * lookup is recorded, so that the separate stage can measure the matmuls that have no entry;
 * `strobe plan` prints all lookups. */
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

/* One variant that computes the matmul of an entry, and its time. */
struct tuning_candidate {
    /* "cublaslt", "wgmma"; "separate": a matmul and a kernel for its epilogue */
    char variant[TUNING_VARIANT];
    double us, spread_us; /* median of the samples; the largest minus the smallest sample */
    /* cuBLASLt's opaque algorithm in hexadecimal; empty for other variants */
    char algorithm[TUNING_ALGORITHM];
    /* digest of the measured kernel sources and launches; empty for variants of a library */
    char launch[TUNING_LAUNCH];
    /* For our own kernels: the output tile of a thread block, and the number of rows of tiles in a
     * group; the tiles of a group run column by column. rows 0: the kernel chooses all three. */
    struct tuning_tile {
        int rows, columns, group;
    } tile;
};

struct tuning_entry {
    char key[TUNING_KEY]; /* "bf16 (8192,768) x (768,2304) tb -> bf16, f32 bias" */
    int n;                /* 0: no variant could be measured */
    struct tuning_candidate candidate[TUNING_VARIANTS]; /* fastest first */
};

struct tuning {
    struct target target; /* the device that was measured */
    char driver[48];      /* version of the driver, for information */
    int n, capacity;
    struct tuning_entry *entry; /* sorted by key */
    struct arena *arena;
};

/* Makes an empty table. */
void tuning_init(struct tuning *t, const struct target *target, struct arena *a);
/* Finds an entry by key; NULL if there is none or `t` is NULL. */
const struct tuning_entry *tuning_find(const struct tuning *t, const char *key);
/* Copies an entry into the table and sorts its candidates; replaces an entry with the same key. */
void tuning_set(struct tuning *t, const struct tuning_entry *e);
const struct tuning_candidate *tuning_candidate(const struct tuning_entry *e, const char *variant);

/* A lookup in the table: the kernel call that needed it, and the answer. */
struct tuning_lookup {
    char key[TUNING_KEY];
    enum op op;
    union attr attr;
    struct numerics numerics;
    int n_in, n_out;
    struct type in_type[MAX_IN], out_type[MAX_OUT];
    const struct tuning_entry *entry; /* NULL: the table has no entry; a default was chosen */
    char chosen[TUNING_VARIANT];      /* the variant that was chosen */
    /* digest of our own kernel for the call; empty if there is none */
    char launch[TUNING_LAUNCH];
};
/* One lookup per key, in the order of the first lookup of each key. */
struct tuning_lookups {
    int n, capacity;
    struct tuning_lookup *lookup;
    struct arena *arena;
};
/* The lookup with that key; NULL if there is none yet. */
struct tuning_lookup *tuning_lookup_find(const struct tuning_lookups *q, const char *key);
/* Adds a lookup that is zero except for its key. */
struct tuning_lookup *tuning_lookup_add(struct tuning_lookups *q, const char *key);
/* The number of lookups without an entry. */
int tuning_missing(const struct tuning_lookups *q);

/* tuning_file.c. The path of a device's table in the user's cache; NULL: no cache folder exists. */
const char *tuning_path(const char *device, struct arena *a);
/* Reads a table; the target's backend is NULL. ST_FORMAT: the file is damaged or of another
 * version. */
enum status tuning_read(const char *path, struct tuning *ret, struct arena *a);
/* Writes the table and replaces the file atomically; keeps entries that another process added for
 * the same target. Fails if the file exists and cannot be read. Only the user may read the new file
 * (base/trust.h). */
enum status tuning_write(const char *path, const struct tuning *t);
/* True if the table is for this device and version of cuBLASLt; else *ret_why is the difference. */
bool tuning_holds(const struct tuning *t, const struct target *target, const char **ret_why);

#endif
