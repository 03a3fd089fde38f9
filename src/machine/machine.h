/* machine.h - the measured peaks of this machine: matmuls of each type, and copies of each size.
 *
 * Matmuls use the same kernel rows as training, on random numbers; the peak is the FLOP/s of the
 * fastest of several large shapes. A copy of n bytes reads n and writes n, so it moves 2n bytes.
 * Peaks are the best samples, not averages, because they serve as ceilings. A measured ceiling can
 * only be too low, so the record keeps the best of all measurements of a machine, and the history
 * of the measurements. */
#ifndef MACHINE_MACHINE_H
#define MACHINE_MACHINE_H

#include "backend/backend.h"
#include "base/floor.h"
#include "graph/op.h"

struct arena;
struct config;
struct json_t;

enum { MACHINE_COPIES = CEILINGS_COPIES, MACHINE_HISTORY = 32, MACHINE_LINKS = 64 };

/* Precision of a matmul. A GPU may compute f32 matmuls in tf32 if the numerics allow it. */
enum machine_precision { MACHINE_F32, MACHINE_TF32, MACHINE_BF16, MACHINE_PRECISIONS };
enum machine_precision machine_precision(enum dtype dtype, bool tf32);
/* "f32", "tf32", "bf16" */
const char *machine_precision_name(enum machine_precision p);

/* The fastest matmul of one type. */
struct machine_peak {
    enum machine_precision precision;
    double flops, flops_one; /* FLOP/s with all threads, with one thread */
    int64_t M, N, K;         /* the fastest shape with all threads */
    const char *kernel;      /* "onednn" */
};

/* A repeated copy in which each thread copies its share. */
struct machine_copy {
    int64_t bytes;           /* source and destination together, per thread */
    double moved, moved_one; /* bytes/s read and written, with all threads, with one thread */
};

/* An all-reduce among ranks that are threads; each rank has the record's number of threads. */
struct machine_link {
    int ranks;
    int64_t bytes; /* size of the data that is summed */
    double sent;   /* bytes/s that each rank sends; it sends 2 (N - 1) / N of `bytes` */
};

/* One measurement in the history of a record. */
struct machine_measurement {
    const char *date; /* "2026-11-21T08:22:13Z" */
    bool quick;       /* took a few seconds, with fewer shapes and repeats */
    double others; /* processors that other processes kept busy (base/load.h); 0: none, unknown */
    double flops[MACHINE_PRECISIONS]; /* FLOP/s of the fastest matmul, all threads; 0: none */
    double moved;                     /* bytes/s read and written by the largest copy */
};

struct machine {
    /* Set by machine_identify. A record is valid for a machine if all of these members except
     * `device` are equal. */
    struct device device; /* the measured device; not set in a record read from the file */
    bool gpu;
    /* "Intel(R) Xeon(R) ...", "oneDNN 2.6.3"; of a GPU "NVIDIA H200", "cuBLASLt 13.0.1" */
    const char *name, *library;
    /* Used and available instructions: "amx of avx2 ..."; "compute capability 9.0, 132 SMs". */
    const char *isa;
    int threads; /* 1 for a GPU */
    /* Set by machine_measure. */
    const char *date; /* of the last measurement */
    bool quick;       /* all measurements were quick */
    double others;    /* the smallest `others` of all measurements */
    struct machine_peak peak[MACHINE_PRECISIONS];
    int peaks;
    struct machine_copy copy[MACHINE_COPIES]; /* by size, smallest first */
    int copies;
    struct machine_link link[MACHINE_LINKS]; /* one per number of ranks and size */
    int links;
    int64_t cache_bytes; /* size of the L2 cache of one thread, or of the GPU; 0: unknown */
    struct machine_measurement history[MACHINE_HISTORY]; /* oldest first */
    int measurements;
};

/* Identifies the GPU, or the processor with the instruction set that base/isa.h allows, the matmul
 * library and the number of threads (base/threads.h). */
enum status machine_identify(struct machine *m, const struct device *device, struct arena *a);
bool machine_same(const struct machine *m, const struct machine *other);

/* Measures matmuls and copies and sets the history to this one measurement. `each`, which may be
 * NULL, gets the fraction done and the name of the next part. */
enum status machine_measure(struct machine *m, bool quick,
                            void (*each)(void *user, double done, const char *what), void *user,
                            struct arena *a);

/* Measures all-reduces of 4 KiB ... 64 MiB among `ranks` >= 2 ranks on a CPU. */
enum status machine_measure_links(struct machine *m, int ranks, bool quick,
                                  void (*each)(void *user, double done, const char *what),
                                  void *user);
/* The bytes/s that each rank sends in an all-reduce of `bytes` bytes; 0: unknown. */
double machine_link_rate(const struct machine *m, int ranks, double bytes);

/* Raises the peaks of `m` to those of an earlier measurement of the same machine, and puts the
 * earlier history in front. Texts are shared, not copied. */
void machine_keep_best(struct machine *m, const struct machine *earlier);
/* *ret_low is the lowest value in the history: of the peak of precision `p`, or of the largest copy
 * if p is MACHINE_PRECISIONS. Returns the number of measurements that have such a value; if it is
 * 0, *ret_low is unchanged. */
int machine_lowest(const struct machine *m, enum machine_precision p, double *ret_low);
/* The peak of this precision; NULL: this machine has no kernel for it. */
const struct machine_peak *machine_peak(const struct machine *m, enum machine_precision p);
/* True if matmuls were measured in both types and float32 was the faster one. */
bool machine_has_slow_bf16(const struct machine *m);
/* The bandwidths of copies by all threads. */
struct ceilings machine_ceilings(const struct machine *m);
/* The lower bound of the time of work in this precision (base/floor.h); all 0 if `m` is NULL. */
struct floor machine_floor(const struct machine *m, enum machine_precision p, double flops,
                           double bytes, double ms);
/* The largest copy that fits in L2, and the copy that is larger than all caches. */
const struct machine_copy *machine_copy_in_cache(const struct machine *m);
const struct machine_copy *machine_copy_large(const struct machine *m);
/* The fastest copy of any size. */
const struct machine_copy *machine_copy_fastest(const struct machine *m);

/* Sets dtype, replay and pad_vocab if they are auto (config_choose). `before` is the configuration
 * of the run that is continued, or NULL. `say`: for a new run, prints one line with the features
 * that were enabled. If one of them is auto, limits the instruction sets to plan.isa. The record of
 * a CPU is that of plan.threads or else of the threads in use. */
enum status machine_choose(struct config *c, const struct config *before, bool say,
                           struct arena *a);

/* The file of records in the user's cache; NULL: the user has no folder for it. */
const char *machine_path(struct arena *a);
/* Identifies the machine, with `threads` threads (0: those in use), and reads its record from
 * machine_path; false if there is none. Measures nothing. */
bool machine_find(struct machine *m, const struct device *device, int64_t threads, struct arena *a);
/* Reads the record of the identified machine `m` from the file of records (docs/FORMATS.md).
 * Returns false and changes nothing if there is no file or no valid record; warns if the file is
 * not readable. */
bool machine_read(struct machine *m, const char *path, struct arena *a);
/* Merges the older record of the same machine into `m` (machine_keep_best) and stores `m` in the
 * file; with `forget` drops the older record instead. Keeps records of other machines, up to a
 * limit. Creates the folder; replaces the file atomically. Fails if the file exists and cannot be
 * read. Strings from the file live in `a`. */
enum status machine_write(struct machine *m, const char *path, bool forget, struct arena *a);
/* Reads a file {"v":1, "machines":[record, ...]}: *ret is the object, *ret_records its list. If the
 * file is missing, damaged or of another version, *ret is a new object without records. *ret owns
 * *ret_records; the caller releases *ret with json_decref or writes it. */
enum status machine_records(const char *path, struct json_t **ret, struct json_t **ret_records,
                            struct arena *a);
/* One record in the file's format, for `--json`; the caller releases it with json_decref. */
struct json_t *machine_json(const struct machine *m);

#endif
