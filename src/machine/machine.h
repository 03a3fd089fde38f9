/* machine.h - what this machine can do at most: matrix products of each type, and copies of each size.
 *
 * Products go through the same kernel rows that training uses, on random numbers; the fastest of several
 * large shapes counts. A copy of n bytes reads n and writes n, so it moves 2n bytes. Peaks are the best
 * that was seen: they are ceilings to hold other times against, not averages. */
#ifndef MACHINE_MACHINE_H
#define MACHINE_MACHINE_H

#include "backend/backend.h"
#include "graph/op.h"

struct arena;

enum { MACHINE_COPIES = 24 };

/* How products multiply: tf32 is what a GPU makes of f32 if it may. */
enum machine_precision { MACHINE_F32, MACHINE_TF32, MACHINE_BF16, MACHINE_PRECISIONS };
enum machine_precision machine_precision(enum dtype dtype, bool tf32);
/* "f32", "tf32", "bf16" */
const char *machine_precision_name(enum machine_precision p);

/* The fastest product of one type. */
struct machine_peak {
    enum machine_precision precision;
    double flops, flops_one; /* per second; with all threads, with one */
    int64_t M, N, K;         /* the shape that was the fastest with all threads */
    const char *kernel;      /* "onednn" */
};

/* A copy, over and over again, in which every thread moves its share. */
struct machine_copy {
    int64_t bytes;           /* source and destination together, of one thread */
    double moved, moved_one; /* bytes per second, read and written; with all threads, with one */
};

struct machine {
    /* Who this is: machine_identify. What was measured counts where all of these are the same. */
    struct device device; /* that is measured; a record of the file has none */
    bool gpu;
    const char *name,
        *library; /* "Intel(R) Xeon(R) ...", "oneDNN 2.6.3"; of a GPU "NVIDIA H200", "cuBLASLt 13.0.1" */
    /* What is used of what there is: "amx of avx2 fma avx512f ..."; of a GPU "compute capability 9.0, 132 SMs" */
    const char *isa;
    int threads; /* of a GPU 1 */
    /* machine_measure */
    const char *date; /* "2026-11-21T08:22:13Z" */
    bool quick;       /* in a few seconds, by another command */
    double others; /* processors that other programs kept busy meanwhile; 0: nobody, or unknown */
    struct machine_peak peak[MACHINE_PRECISIONS];
    int peaks;
    struct machine_copy copy[MACHINE_COPIES]; /* by size, smallest first */
    int copies;
    int64_t cache_bytes; /* L2 of one thread, or of a GPU, as the system says; 0: it does not */
};

/* The processor, its instructions within the limit that is set (base/isa.h), the library of products, and
 * the threads that are set (base/threads.h); or the GPU. */
enum status machine_identify(struct machine *m, const struct device *device, struct arena *a);
bool machine_same(const struct machine *m, const struct machine *other);

/* Fills the rest. `each` is told how much is done, between 0 and 1, and what comes next; may be NULL. */
enum status machine_measure(struct machine *m, bool quick,
                            void (*each)(void *user, double done, const char *what), void *user,
                            struct arena *a);

/* True if others were so busy meanwhile that the peaks are likely too low. */
bool machine_was_disturbed(const struct machine *m);
/* The product of that type; NULL: this machine has no kernel for it. */
const struct machine_peak *machine_peak(const struct machine *m, enum machine_precision p);
/* Bytes per second that a copy moves when source and destination together are so many bytes, shared by
 * all threads; 0 if no copy was measured. */
double machine_copy_rate(const struct machine *m, double bytes);
/* The largest copy that stays in L2, and the one that no cache holds. */
const struct machine_copy *machine_copy_in_cache(const struct machine *m);
const struct machine_copy *machine_copy_large(const struct machine *m);
/* The fastest of all, of whatever size. */
const struct machine_copy *machine_copy_fastest(const struct machine *m);

/* The file of records (docs/FORMATS.md): fills in the rest of the machine that `m` was identified as.
 * False, and nothing is changed, where there is no file, no such record, or none that makes sense. */
bool machine_read(struct machine *m, const char *path, struct arena *a);
/* Puts the record in the place of the older one of the same machine; others stay, up to a limit. Makes
 * the folder; the file is replaced as a whole. */
enum status machine_write(const struct machine *m, const char *path);
/* One record as the file has it, for `--json`; the caller releases it with json_decref. */
struct json_t *machine_json(const struct machine *m);

#endif
