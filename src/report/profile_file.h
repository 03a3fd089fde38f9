/* profile_file.h - profile.json (docs/PROFILE.md), read back into memory.
 *
 * As of other files of a run: fields that are not known are passed over, what is missing is NAN, NULL or
 * none, and a version that this program does not know is refused by name. Everything lives in the arena. */
#ifndef REPORT_PROFILE_FILE_H
#define REPORT_PROFILE_FILE_H

#include "base/arena.h"

enum {
    PROFILE_FILE_VERSION = 1,
    PROFILE_FILE_DEPTH = 6, /* words of a range */
    PROFILE_FILE_PARTS = 16,
    PROFILE_FILE_FAMILIES = 12, /* the last: of a family that is not in the list */
};

/* Places in the list of families, by which pictures choose colours. */
int profile_file_family(const char *name);
const char *profile_file_family_name(int family);

/* Of one execution; NAN where the file does not say. */
struct profile_file_times {
    double n, median, mean, std, min, max;
};

struct profile_file_row {
    const char *plan; /* NULL, as all that only nodes have: of no node */
    int node;
    const char *op, *dtype, *peak_of, *shape, *types;
    const char *phase, *scope, *variant, *device_kernel, *device_short, *bound;
    int family, layer; /* layer: a block of the model, or -1 */
    const char *word[PROFILE_FILE_DEPTH];
    int words;
    double flops, bytes, floor_ms; /* of one execution */
    double per_step;               /* executions */
    double ms;                     /* of a step; rows and idle time add up to its mean */
    double std;                    /* of that, over the steps; NAN: the file does not say */
    double work_ms; /* that its FLOPs and bytes took: of all kernels of its node, or 0 */
    struct profile_file_times run_ms;
    int kernel; /* of which kernel it is an instance */
};

/* Rows that are the same work, done by the same kernel. */
struct profile_file_kernel {
    const char *name;                                     /* "MATMUL 768 x 384 x 128 onednn" */
    const char *label;                                    /* "MATMUL 768 x 384 x 128" */
    int row;                                              /* the first that is an instance of it */
    double per_step, ms, work_ms, flops, bytes, floor_ms; /* of a step */
};

struct profile_file_moment {
    int row, lane;
    double start_us, end_us;
};

/* What is in memory while each kernel runs, as it was planned. */
struct profile_file_memory {
    struct profile_file_part {
        const char *id, *name; /* "saved", "saved for backward" */
    } part[PROFILE_FILE_PARTS];
    int parts;
    struct profile_file_column {
        int row;        /* that runs; -1: of no row */
        double time_us; /* when it runs in the step that the timeline shows; NAN: it is not there */
        double bytes[PROFILE_FILE_PARTS];
    } * column;
    int columns;
    int peak;     /* a column; -1: the file does not say */
    double total; /* bytes that are allocated; NAN: it does not */
};

/* A ceiling of the machine: of products FLOP/s, of copies bytes/s. */
struct profile_file_peak {
    const char *name; /* "bf16"; "L2", "memory" */
    double rate;
};

enum { PROFILE_FILE_PEAKS = 8, PROFILE_FILE_PHASES = 8, PROFILE_FILE_LANES = 8 };

struct profile_file_phase {
    const char *name;
    double ms, idle_ms; /* of a step, the mean; idle_ms is in ms */
};

struct profile_file {
    const char *name, *path;
    int run;             /* of the runs of a report; -1: the file stands alone */
    const char *command; /* that made it; NULL: the file does not say */
    const char *model;   /* "12 layers, 768 channels, ..." */
    const char *device, *version, *date, *times_by, *times_why, *traced_by, *dropped_why;
    bool replay;
    double threads, warmup, steps, overhead, host_ms, dropped, unmatched;
    struct profile_file_times step_ms; /* of watched steps */
    double plain_ms;                   /* the median of steps that nobody watched */
    double idle_ms, gaps;              /* of a step, the mean */
    double idle_std;                   /* of idle_ms, over the steps */
    double others;                     /* processors that other programs kept busy meanwhile */
    struct profile_file_phase phase[PROFILE_FILE_PHASES];
    int phases;
    const char *machine, *machine_date; /* whose ceilings these are, and since when; NULL: none */
    struct profile_file_peak product[PROFILE_FILE_PEAKS], copy[3];
    int products, copies;
    struct profile_file_answer { /* what it says in words: "top kernel", a sentence or two */
        const char *about, *text;
    } * answer;
    int answers;
    struct profile_file_row *row;
    int rows;
    struct profile_file_kernel *kernel;
    int kernels;
    struct profile_file_moment *moment;
    int moments;
    const char *lane[PROFILE_FILE_LANES];
    int lanes;
    struct profile_file_memory memory;
};

/* `name`: what a person calls it. */
enum status profile_file_read(const char *path, const char *name, struct arena *a,
                              struct profile_file *ret_profile);
/* Of a step, the mean: its rows and idle time; what its floors add up to. */
double profile_file_ms(const struct profile_file *p);
double profile_file_floor(const struct profile_file *p);
/* In a sentence: how long a step takes, its floor, who took the times. */
const char *profile_file_words(const struct profile_file *p, struct arena *a);

#endif
