/* machine.h - the measured peaks of this machine: matmuls of each type, and copies of each size.
 *
 * Matmuls use the same kernel rows as training, on random numbers; the fastest of several large
 * shapes counts. A copy of n bytes reads n and writes n, so it moves 2n bytes. Peaks are the best
 * samples, not averages: they are ceilings for other times. A ceiling can only be measured too
 * low, so the record keeps the best of all measurements of a machine, and the history of them. */
#ifndef MACHINE_MACHINE_H
#define MACHINE_MACHINE_H

#include "backend/backend.h"
#include "base/floor.h"
#include "graph/op.h"

struct arena;
struct json_t;

enum { MACHINE_COPIES = CEILINGS_COPIES, MACHINE_HISTORY = 32, MACHINE_LINKS = 64 };

/* Precision of a matmul; a GPU computes f32 in tf32 if allowed. */
enum machine_precision { MACHINE_F32, MACHINE_TF32, MACHINE_BF16, MACHINE_PRECISIONS };
enum machine_precision machine_precision(enum dtype dtype, bool tf32);
/* "f32", "tf32", "bf16" */
const char *machine_precision_name(enum machine_precision p);

/* The fastest matmul of one type. */
struct machine_peak {
    enum machine_precision precision;
    double flops, flops_one; /* FLOP/s with all threads, with one */
    int64_t M, N, K;         /* the fastest shape with all threads */
    const char *kernel;      /* "onednn" */
};

/* A repeated copy in which each thread copies its share. */
struct machine_copy {
    int64_t bytes;           /* source and destination together, per thread */
    double moved, moved_one; /* bytes/s, read and written, with all threads, with one */
};

/* An all-reduce among ranks that are threads, each with the threads of the record. */
struct machine_link {
    int ranks;
    int64_t bytes; /* that are summed */
    double sent;   /* bytes/s that each rank sends: 2 (N - 1) / N of them */
};

/* One of the measurements that a record is the best of. */
struct machine_measurement {
    const char *date; /* "2026-11-21T08:22:13Z" */
    bool quick;       /* of a few seconds, with fewer shapes and repeats */
    double others;    /* processors kept busy by other processes (base/load.h); 0: none, unknown */
    double flops[MACHINE_PRECISIONS]; /* FLOP/s of its fastest matmul, all threads; 0: none */
    double moved;                     /* bytes/s of its largest copy, read and written */
};

struct machine {
    /* Set by machine_identify. Measurements are valid for a machine if all of these are equal. */
    struct device device; /* the measured device; not set in records of the file */
    bool gpu;
    /* "Intel(R) Xeon(R) ...", "oneDNN 2.6.3"; of a GPU "NVIDIA H200", "cuBLASLt 13.0.1" */
    const char *name, *library;
    /* Used of available instructions: "amx of avx2 ..."; "compute capability 9.0, 132 SMs". */
    const char *isa;
    int threads; /* 1 for a GPU */
    /* Set by machine_measure. */
    const char *date; /* of the last measurement */
    bool quick;       /* all measurements were quick ones */
    double others;    /* the least of all measurements: processors kept busy by other processes */
    struct machine_peak peak[MACHINE_PRECISIONS];
    int peaks;
    struct machine_copy copy[MACHINE_COPIES]; /* by size, smallest first */
    int copies;
    struct machine_link link[MACHINE_LINKS]; /* for each number of ranks by size */
    int links;
    int64_t cache_bytes; /* L2 of one thread, or of a GPU; 0: unknown */
    struct machine_measurement past[MACHINE_HISTORY]; /* oldest first */
    int pasts;
};

/* Identifies the processor with its instruction set as limited by base/isa.h, the matmul library
 * and the number of threads (base/threads.h); or the GPU. */
enum status machine_identify(struct machine *m, const struct device *device, struct arena *a);
bool machine_same(const struct machine *m, const struct machine *other);

/* Measures the rest; the history is then this measurement alone. `each` (may be NULL) reports the
 * fraction done and what comes next. */
enum status machine_measure(struct machine *m, bool quick,
                            void (*each)(void *user, double done, const char *what), void *user,
                            struct arena *a);

/* Measures all-reduces of 4 KiB ... 64 MiB among `ranks` ranks, at least 2, of a CPU. */
enum status machine_measure_links(struct machine *m, int ranks, bool quick,
                                  void (*each)(void *user, double done, const char *what),
                                  void *user);
/* Bandwidth in bytes/s, sent by each rank, of an all-reduce of so many bytes; 0: unknown. */
double machine_link_rate(const struct machine *m, int ranks, double bytes);

/* Raises the peaks of `m` to those of another measurement of the same machine, made earlier, and
 * puts its history in front. Texts are shared, not copied. */
void machine_keep_best(struct machine *m, const struct machine *earlier);
/* The lowest of the history, of a peak or (MACHINE_PRECISIONS) of the largest copy. Returns the
 * number of measurements that have it. */
int machine_lowest(const struct machine *m, enum machine_precision p, double *ret_low);
/* The peak of that type; NULL: this machine has no kernel for it. */
const struct machine_peak *machine_peak(const struct machine *m, enum machine_precision p);
/* The copies by all threads. */
struct ceilings machine_ceilings(const struct machine *m);
/* The least time of work with that peak (base/floor.h); all 0 for `m` NULL. */
struct floor machine_floor(const struct machine *m, enum machine_precision p, double flops,
                           double bytes, double ms);
/* The largest copy that fits in L2, and the one larger than all caches. */
const struct machine_copy *machine_copy_in_cache(const struct machine *m);
const struct machine_copy *machine_copy_large(const struct machine *m);
/* The fastest copy of any size. */
const struct machine_copy *machine_copy_fastest(const struct machine *m);

/* Reads the record of the identified machine `m` from the file of records (docs/FORMATS.md).
 * Returns false and changes nothing if there is no file or no valid record; warns if it cannot be
 * read. */
bool machine_read(struct machine *m, const char *path, struct arena *a);
/* Keeps the best of `m` and the older record of the same machine (machine_keep_best), in `m` and in
 * the file; with `forget` the older record is dropped. Keeps other records, up to a limit. Creates
 * the folder; replaces the file atomically. Fails if there is a file that cannot be read. Strings
 * that are read are kept in `a`. */
enum status machine_write(struct machine *m, const char *path, bool forget, struct arena *a);
/* Reads a file {"v":1, "machines":[record, ...]}; instead of one that is missing, damaged or of
 * another version, a new one. The caller releases *ret, which owns *ret_records, with json_decref
 * or writes it. */
enum status machine_records(const char *path, struct json_t **ret, struct json_t **ret_records,
                            struct arena *a);
/* One record in the file's format, for `--json`; the caller releases it with json_decref. */
struct json_t *machine_json(const struct machine *m);

#endif
