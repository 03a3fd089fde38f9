/* bench_cells.h - times parts of training steps for several configurations.
 *
 * A cell is a configuration; its lines are the timed parts of its step. A step gives one sample per
 * line: the time by the host clock from the launch of the part until the device is done, without
 * feeding inputs. With replay=true each part is a separate graph that is captured by the part's
 * second run, so use at least two warm-up steps. So that clock drift favors no cell, the cells are
 * sampled in rounds, or all cells run one after another and then again in reverse order. */
#ifndef BENCH_BENCH_CELLS_H
#define BENCH_BENCH_CELLS_H

#include "backend/backend.h"
#include "base/hash.h"
#include "base/judge.h"
#include "base/stats.h"
#include "config/config.h"

enum bench_line {
    BENCH_INFERENCE,  /* the loss alone; nothing is saved for the backward pass */
    BENCH_FORWARD,    /* forward pass of training, up to the first kernel of the backward pass */
    BENCH_BOTH,       /* forward and backward as one part */
    BENCH_DIFFERENCE, /* the backward pass as BENCH_BOTH - BENCH_FORWARD of the same step */
    BENCH_BACKWARD,   /* the backward pass alone: the clock starts after forward is done */
    BENCH_UPDATE,     /* gradient norm, clipping, optimizer */
    BENCH_STEP,       /* a whole training step, with all its micro-steps */
    BENCH_LINES
};
/* "forward", "forward + backward", "backward, by difference", "backward, alone" ... */
const char *bench_line_name(enum bench_line line);
/* The mask of lines of a word of --phase: inference, forward, backward, update, step; 0: none. */
unsigned bench_lines_of(const char *word, int64_t length);

/* The line whose loss is reported: step, else forward + backward, else inference, else none
 * (BENCH_LINES). */
enum bench_line bench_line_of_loss(unsigned lines);

/* The order in which cells are sampled. */
enum bench_order {
    BENCH_AUTO,   /* see bench_options */
    BENCH_ROUNDS, /* a sample of each cell per round, in rotating order */
    BENCH_TWICE,  /* one cell after another, then in reverse order; half of the samples each time */
    BENCH_ONCE,   /* one cell after another; for timing first steps */
    BENCH_ORDERS
};

/* A part of the time before the second step. `setup`: the time in it for making kernels ready; zero
 * on a CPU. */
struct bench_start {
    double ms;
    struct kernel_setup setup;
};
enum { BENCH_OPENING, BENCH_FIRST_STEP, BENCH_STARTS };

struct bench_cell {
    struct config config;
    int64_t vocab;
    /* 1 << BENCH_FORWARD ...; bench_cells_run removes lines that do not fit in memory. */
    unsigned lines;
    int warmup, steps;
    /* results */
    const char *reason; /* why the cell was not run (the caller may set it); NULL: it was run */
    unsigned refused;   /* lines that were removed because they do not fit; each has a reason */
    int64_t bytes;      /* memory of the plans; 0: there are no plans */
    int64_t tokens;     /* per step, all micro-steps together */
    double others;      /* share of the processors that other programs used; 0 on a GPU */
    double loss;        /* of the first run of bench_line_of_loss; 0: none */
    struct {
        double first_ms;      /* time of the very first run, even if it is a warm-up */
        struct stats ms;      /* of the runs after the warm-up */
        const char *reason;   /* why the line was refused */
        int64_t needs_bytes;  /* of a refused line: the memory of plans that include it */
        double *all_ms;       /* per run, warm-up included, in the arena */
        const double *series; /* the part of all_ms after the warm-up, summarized by `ms` */
    } line[BENCH_LINES];
    int runs;
    /* BENCH_OPENING: plans and memory; BENCH_FIRST_STEP: the first run of all lines */
    struct bench_start start[BENCH_STARTS];
    char work[HASH_HEX]; /* hash of the work of a training step (facts.h); "": none */
};

struct bench_options {
    /* BENCH_AUTO: ONCE if warm-ups differ or one is 0; ROUNDS on a CPU if all cells fit in memory
     * at once and have the same number of threads; else TWICE, because on a GPU the heat of a large
     * cell lowers the clock of the next cell. */
    enum bench_order order;
    int64_t limit; /* limit of memory in bytes; 0: the free memory */
    void (*each)(void *user, double share, const char *what); /* progress 0 ... 1; may be NULL */
    void *user;
    const char *(*name)(void *user, const struct bench_cell *c); /* the cell's name, for `what` */
};

/* Skips a cell, with a reason, if it needs a feature that the device lacks or more memory than
 * there is; missing memory may show only in a step. If not all lines fit, a cell runs without
 * update and step, or else only inference. After Ctrl-C (base/interrupt.h) no step begins: a cell
 * has the samples taken so far, or a reason. All cells use the same device. ret_order may be
 * NULL. */
enum status bench_cells_run(const struct bench_options *o, struct bench_cell *cell, int cells,
                            enum bench_order *ret_order, struct arena *a);

/* Tokens that a line processes: for BENCH_STEP the tokens of all micro-steps, for other lines the
 * tokens of one micro-step. */
double bench_line_tokens(const struct bench_cell *c, enum bench_line line);
/* Compares the speed of a line in two cells of a bench_cells_run that returned `order`: by pairs of
 * samples of the same round if there were rounds, else by two series of samples. The speed is per
 * token, but per update for BENCH_UPDATE. JUDGED_NOT if a cell has no samples, or a mean that is
 * not above zero, which is possible for BENCH_DIFFERENCE. */
struct judgement bench_cells_judge(const struct bench_cell *first, const struct bench_cell *second,
                                   enum bench_line line, enum bench_order order);

#endif
