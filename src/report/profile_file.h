/* profile_file.h - profile.json (docs/PROFILE.md), read back into memory.
 *
 * As with other files of a run, unknown fields are ignored, missing ones are NAN, NULL or empty,
 * and an unknown version is an error that names the file. Everything lives in the arena. */
#ifndef REPORT_PROFILE_FILE_H
#define REPORT_PROFILE_FILE_H

#include "base/arena.h"
#include "base/floor.h"

enum {
    PROFILE_FILE_VERSION = 1,
    PROFILE_FILE_DEPTH = 6, /* words of a range */
    PROFILE_FILE_PARTS = 16,
    PROFILE_FILE_FAMILIES = 13, /* the last: of a family that is not in the list */
};

/* Index in the list of families, which selects the color in pictures. */
int profile_file_family(const char *name);
const char *profile_file_family_name(int family);

/* Statistics of one execution; NAN if the file lacks them. */
struct profile_file_times {
    double n, median, mean, std, min, max;
};

/* How a kernel of Strobe's own is launched on a GPU; NAN and NULL: unknown, as in older files. */
struct profile_file_launch {
    double blocks, threads; /* of the grid; of a block */
    double registers, static_bytes, dynamic_bytes;
    double sm_blocks, sm_warps, sm_warps_most; /* of a multiprocessor */
    const char *limit;
    double waves, tail;
};

struct profile_file_row {
    const char *op, *dtype, *peak_of, *shape, *types; /* NULL if the row is not a node */
    const char *phase, *scope, *variant, *device_kernel, *bound;
    int family, layer; /* layer: a block of the model, or -1 */
    const char *word[PROFILE_FILE_DEPTH];
    int words;
    double flops, bytes, floor_ms; /* per execution */
    double per_step;               /* executions per step */
    double ms;                     /* per step; rows and idle time add up to the mean step */
    double std;                    /* of `ms`, over the steps; NAN: unknown */
    const double *chunk_ms;        /* one for each chunk; NULL: unknown */
    /* Hardware counters of one execution; all NAN: there are none. dram_of_node: bytes of all
     * kernels of the node, beside `bytes`. */
    double dram_read, dram_written, dram_of_node, tensor_active, sm_active, dram_busy;
    struct profile_file_launch launch;
    double work_ms; /* time of the FLOPs and bytes: of all kernels of the node, or 0 */
    struct profile_file_times run_ms;
    int kernel; /* index of its kernel */
};

/* Rows with the same work and the same kernel. */
struct profile_file_kernel {
    const char *name;                                     /* "MATMUL 768 x 384 x 128 onednn" */
    const char *label;                                    /* "MATMUL 768 x 384 x 128" */
    int row;                                              /* its first row */
    double per_step, ms, work_ms, flops, bytes, floor_ms; /* per step */
};

struct profile_file_moment {
    int row, lane;
    double start_us, end_us;
};

/* Planned memory while each kernel runs. */
struct profile_file_memory {
    struct profile_file_part {
        const char *id, *name; /* "saved", "saved for backward" */
    } part[PROFILE_FILE_PARTS];
    int parts;
    struct profile_file_column {
        int row;        /* the row that runs; -1: none */
        double time_us; /* start of that row in the timeline; NAN: it is not in the timeline */
        double bytes[PROFILE_FILE_PARTS];
    } * column;
    int columns;
    int peak;     /* index of a column; -1: unknown */
    double total; /* allocated bytes; NAN: unknown */
};

/* A measured peak of the machine: of matmuls in FLOP/s, of copies in bytes/s. */
struct profile_file_peak {
    const char *name; /* "bf16"; "L2", "memory" */
    double rate;
};

enum { PROFILE_FILE_PEAKS = 8, PROFILE_FILE_PHASES = 8, PROFILE_FILE_LANES = 8 };

/* The machine that the ceilings are of. Records of equal machines differ only in what was measured
 * when. */
struct profile_file_machine {
    const char *name, *isa, *library; /* NULL: unknown */
    double cache_bytes;               /* NAN: unknown */
    struct ceilings ceilings;
};

struct profile_file_phase {
    const char *name;
    double ms, idle_ms; /* means per step; `ms` includes idle_ms */
};

/* Neighbouring steps: what verdicts compare. Profiles with the same `of` took turns with each
 * other, and turns of one number are neighbours in time. Medians in ms; NAN: none. */
struct profile_file_chunks {
    int n;
    double of, *turn, *plain_ms, *step_ms, *idle_ms;
};

struct profile_file {
    const char *name, *path;
    int run;             /* index of the run of the report; -1: none */
    const char *command; /* the command line that wrote it; NULL: unknown */
    const char *model;   /* "12 layers, 768 channels, ..." */
    const char *device, *version, *date, *times_by, *times_why, *traced_by, *dropped_why;
    bool replay;
    double tokens; /* of a step; NAN: unknown */
    double threads, warmup, steps, overhead, host_ms, dropped, unmatched;
    struct profile_file_times step_ms; /* of profiled steps */
    double plain_ms;                   /* median of steps without profiling */
    double idle_ms, gaps;              /* means per step */
    double idle_std;                   /* of idle_ms, over the steps */
    struct profile_file_chunks chunks;
    const char *commit, *work; /* of the program; plan_sha256; NULL: unknown */
    double others, processors; /* those that other programs kept busy, and all; NAN: unknown */
    struct profile_file_phase phase[PROFILE_FILE_PHASES];
    int phases;
    const char *machine, *machine_date; /* device and date of the peaks; NULL: unknown */
    struct profile_file_machine of;     /* the same, in more detail */
    struct profile_file_peak product[PROFILE_FILE_PEAKS], copy[3];
    int products, copies;
    bool raised;                 /* peaks.h raised a ceiling */
    struct profile_file_answer { /* its summary: "top kernel", and a sentence or two */
        const char *about, *text;
    } * answer;
    int answers;
    struct profile_file_row *row;
    int rows;
    struct profile_file_kernel *kernel;
    int kernels;
    struct profile_file_moment *moment;
    int moments;
    struct profile_file_memory memory;
};

/* `name`: how tables and pages name the profile. */
enum status profile_file_read(const char *path, const char *name, struct arena *a,
                              struct profile_file *ret_profile);
/* Sets `copy` from the machine's copies: the ceilings that have a name. */
void profile_file_name_copies(struct profile_file *p);
/* The share of all processors that other programs used; 0: none, or unknown. */
double profile_file_busy(const struct profile_file *p);
/* Mean step time as the sum of rows and idle time; the sum of the lower bounds. */
double profile_file_ms(const struct profile_file *p);
double profile_file_floor(const struct profile_file *p);
/* One sentence: the step time, its lower bound and the idle time. */
const char *profile_file_words(const struct profile_file *p, struct arena *a);

#endif
