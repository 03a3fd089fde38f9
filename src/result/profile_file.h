/* profile_file.h - profile.json (docs/PROFILE.md), written and read by one table of fields.
 *
 * As with other files of a run, unknown fields are ignored, missing ones are NAN, NULL or empty,
 * and an unknown version is an error that names the file. Everything lives in the arena. */
#ifndef RESULT_PROFILE_FILE_H
#define RESULT_PROFILE_FILE_H

#include "base/arena.h"
#include "base/counter_shares.h"
#include "base/floor.h"
#include "base/stats.h"

struct step_launch;

enum {
    PROFILE_FILE_VERSION = 1,
    PROFILE_FILE_PARTS = 16,
    PROFILE_FILE_FAMILIES = 13, /* the last: of a family that is not in the list */
};

/* Index in the list of families, which selects the color in pictures. */
int profile_file_family(const char *name);
const char *profile_file_family_name(int family);

/* How a kernel of Strobe's own is launched on a GPU; NAN and NULL: unknown, as in older files. */
struct profile_file_launch {
    double blocks, threads; /* of the grid; of a block */
    double registers, static_bytes, dynamic_bytes;
    double sm_blocks, sm_warps, sm_warps_most; /* of a multiprocessor */
    const char *limit;
    double waves, tail;
};

/* The part of the model that a node belongs to: "forward", "block 3", "attention", "scores". The
 * update has the name of its optimizer. */
enum { RANGE_DEPTH = 6 };
struct range {
    const char *word[RANGE_DEPTH];
    int words; /* at least 1 */
    int layer; /* block of the model, -1 outside; set for stored gradients, too */
};

/* A node of one of the step's plans, or one kernel of a node if the device reports its kernels. */
struct profile_row {
    const char *plan, *op_name, *dtype_name, *peak_of; /* NULL if the row is not a node */
    const char *shape;
    const char *types; /* "f32 (4,32), f32 (32,8) -> f32 (4,8)" */
    const char *phase_name, *scope, *bound_name, *family_name;
    const char *variant;       /* the kernel row: "onednn" */
    const char *device_kernel; /* its name on the device; NULL: not reported */
    int node, family;          /* node: of the plan, or -1 */
    struct range range;
    double flops, bytes; /* per execution; the longest kernel of a node has the whole work */
    double floor_ms;     /* per execution: FLOPs or bytes at the ceilings, the longer of the two */
    double per_step;     /* executions per step */
    double ms;           /* mean per step: rows and idle time add up to the step */
    double std;          /* of `ms`, over the steps; NAN: unknown */
    double work_ms;   /* time that the work took, mean or if busy median: all kernels of the node,
                          * or 0 */
    double hidden_ms; /* mean per step: time that overlaps an earlier row */
    /* Working time of the host's threads per step, the mean over the threads, and that of the
     * busiest thread of each kernel; NAN: not observed. */
    double busy_ms, busiest_ms;
    double *chunk_ms; /* one for each chunk; NULL: unknown */
    int chunks;
    /* Hardware counters of one execution, the mean over those of one step (backend/counters.h); all
     * NAN: there are none. dram_of_node: bytes of all kernels of the node, beside `bytes`. */
    double dram_read, dram_written, dram_of_node;
    COUNTER_SHARES(COUNTER_SHARE_MEMBER, double)
    struct profile_file_launch launch;
    struct stats run_ms; /* of one execution */
    int kernel;          /* index of its kernel */
    /* Not in the file: what the program that measures knows (profile/profile.h). */
    unsigned kind, phase, op, dtype, precision, bound; /* of these enums */
    const char *device_short;                          /* device_kernel, shortened for tables */
    double *each_ms, *step_ms; /* each execution over all steps; each step */
    int runs;                  /* executions over all steps */
    int counted;               /* those with hardware counters */
    bool unseen;               /* a library distributes the work over threads, unreported */
    const struct step_launch *launched; /* of a kernel of Strobe's own on a GPU; NULL: unknown */
};

/* Rows with the same work and the same kernel. */
struct profile_file_kernel {
    const char *name;                                     /* "MATMUL 768 x 384 x 128 onednn" */
    const char *label;                                    /* "MATMUL 768 x 384 x 128" */
    int row;                                              /* its first row */
    double per_step, ms, work_ms, flops, bytes, floor_ms; /* per step */
};

struct profile_moment { /* of the timeline */
    int row;
    double start_us, end_us;
    int lane; /* 0: kernels; 1: copies that overlap kernels */
};

/* Planned memory while each kernel runs. */
struct profile_file_memory {
    const char *const *part; /* "saved" */
    int parts;
    struct profile_file_column {
        int row;       /* the row that runs; -1: none */
        double *bytes; /* of each part */
        int parts;
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

enum { PROFILE_FILE_PEAKS = 8, PROFILE_FILE_LANES = 8 };

/* The machine that the ceilings are of. Records of equal machines differ only in what was measured
 * when. */
struct profile_file_machine {
    const char *cpu, *gpu, *isa, *library, *date; /* NULL: unknown */
    double cache_bytes;                           /* NAN: unknown */
    struct profile_file_copy {
        double bytes, rate;
    } * copy; /* as in the file */
    int copies;
    struct ceilings ceilings;
};

/* Neighboring steps: what verdicts compare. Profiles with the same `of` took turns with each
 * other, and turns of one number are neighbors in time. Medians in ms; NAN: none. */
struct profile_file_chunks {
    int n, plain_n, step_n, idle_n; /* all equal, or n is 0 */
    double of, *turn, *plain_ms, *step_ms, *idle_ms;
};

struct profile_file {
    double v; /* PROFILE_FILE_VERSION */
    const char *name, *path;
    int run;             /* index of the run of the report; -1: none */
    const char *command; /* the command line that wrote it; NULL: unknown */
    const char *model;   /* "12 layers, 768 channels, ..." */
    double layers, heads, channels, context, parameters; /* of the model; NAN: unknown */
    const char *device, *version, *date, *times_by, *times_why, *traced_by, *dropped_why;
    bool replay;
    double tokens; /* of a step; NAN: unknown */
    double threads, warmup, steps, overhead, host_ms, dropped, unmatched;
    double *overhead_half; /* half of the pairs of steps lie between these two */
    int halves;
    double counted; /* kernels of a step with hardware counters */
    const char *counters_why;
    /* Of profiled steps, of steps without profiling; of idle_ms, over the steps. */
    struct stats step_ms, plain_step_ms, idle_step_ms;
    double idle_ms, gaps; /* means per step */
    struct profile_file_chunks chunks;
    const char *commit, *work; /* of the program; plan_sha256; NULL: unknown */
    double others, processors; /* those that other programs kept busy, and all; NAN: unknown */
    struct figure *phase_ms, *phase_idle_ms; /* as in the file */
    int phase_n, phase_idle_n;
    const char *machine, *machine_date; /* device and date of the peaks; NULL: unknown */
    struct profile_file_machine of;     /* the same, in more detail */
    struct profile_file_peak *product, copy[3];
    int products, copies;
    bool raised;          /* peaks.h raised a ceiling */
    struct profile_word { /* its summary: "top kernel", and a sentence or two */
        const char *about, *text;
    } * answer;
    int answers;
    struct profile_row *row;
    int rows;
    struct profile_file_kernel *kernel;
    int kernels;
    const char *moment_fields;
    struct profile_moment *moment; /* of the step nearest to the median, `shown` */
    int moments, shown;
    struct profile_file_memory memory;
};

struct record;
extern const struct record *const profile_file_record, *const profile_row_record;
/* Whether both are the same work by the same kernel. */
bool profile_row_same(const struct profile_row *x, const struct profile_row *y);
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
