/* bench_cells.h - times parts of training steps for several configurations.
 *
 * A cell is a configuration; its lines are the timed parts of its step: one sample per step, by the
 * host clock from the launch of a part until the device is done; inputs are fed before. With
 * replay=true each part is a separate captured graph, captured in its second run (two warm-up steps
 * leave that out). Clock drift favours no cell: cells are sampled in rounds, or each runs twice,
 * the second time in reverse order. */
#ifndef BENCH_BENCH_CELLS_H
#define BENCH_BENCH_CELLS_H

#include "backend/backend.h"
#include "base/hash.h"
#include "base/judge.h"
#include "base/stats.h"
#include "config/config.h"

enum bench_line {
    BENCH_INFERENCE,  /* the loss alone, nothing saved for backward */
    BENCH_FORWARD,    /* of training: up to the first kernel of the backward pass */
    BENCH_BOTH,       /* forward and backward in one */
    BENCH_DIFFERENCE, /* the backward pass as the difference of these two, per step */
    BENCH_BACKWARD,   /* alone: the clock starts after forward is done */
    BENCH_UPDATE,     /* gradient norm, clipping, optimizer */
    BENCH_STEP,       /* a whole training step, with all its micro-steps */
    BENCH_LINES
};
/* "forward", "forward + backward", "backward, by difference", "backward, alone" ... */
const char *bench_line_name(enum bench_line line);
/* Lines (a mask) of a word of --phase: inference, forward, backward, update, step; 0: none. */
unsigned bench_lines_of(const char *word, int64_t length);

/* The line of a cell's loss: step, else forward + backward, else inference, else BENCH_LINES. */
enum bench_line bench_line_of_loss(unsigned lines);

/* The order in which cells are sampled. */
enum bench_order {
    BENCH_AUTO,   /* see bench_options */
    BENCH_ROUNDS, /* a sample of each cell per round, in rotating order */
    BENCH_TWICE,  /* one after the other, then in reverse order, half of the samples each time */
    BENCH_ONCE,   /* one after the other; to look at first steps */
    BENCH_ORDERS
};
/* "auto", "rounds", "twice", "once" */
const char *bench_order_name(enum bench_order order);

/* What precedes the second step. `setup` is the part that made kernels ready; zero on a CPU. */
struct bench_start {
    double ms;
    struct kernel_setup setup;
};
enum { BENCH_OPENING, BENCH_FIRST_STEP, BENCH_STARTS };

struct bench_cell {
    struct config config;
    int64_t vocab;
    /* 1 << BENCH_FORWARD ...; bench_cells_run leaves those that fit in memory, if not all do. */
    unsigned lines;
    int warmup, steps;
    /* results */
    const char *reason; /* why it was not run (may be set by the caller); NULL: it was */
    unsigned refused;   /* requested lines that do not fit, while others do: each has a reason */
    int64_t bytes;      /* memory of its plans; 0: there are none */
    int64_t tokens;     /* per step, all micro-steps together */
    double others;      /* share of the processors that other programs used; 0: a GPU */
    double loss;        /* of the first run of bench_line_of_loss; 0: none */
    struct {
        double first_ms;      /* the very first run, even if it is a warm-up */
        struct stats ms;      /* of the runs after the warm-up */
        const char *reason;   /* of a refused line */
        int64_t needs_bytes;  /* of a refused line: the memory of plans that include it */
        double *all_ms;       /* of all `runs`, the first warm-up included, in the arena */
        const double *series; /* the runs of `ms`: all_ms after the warm-up */
    } line[BENCH_LINES];
    int runs;
    struct bench_start start[BENCH_STARTS]; /* plans and memory; then all lines of the first run */
    char work[HASH_HEX];                    /* facts.h; "": no training step */
};

struct bench_options {
    /* BENCH_AUTO: ONCE if warm-ups differ or one is 0; ROUNDS on a CPU if all cells fit in memory
     * at once and have the same number of threads; else TWICE, because on a GPU the heat of a large
     * cell lowers the clock of the next one. */
    enum bench_order order;
    int64_t limit; /* limit of memory in bytes; 0: the free memory */
    void (*each)(void *user, double share, const char *what); /* 0 ... 1; NULL: none */
    void *user;
    const char *(*name)(void *user, const struct bench_cell *c); /* name of a cell, for `what` */
};

/* A cell that needs more memory than there is, also in a step, or something that the device lacks,
 * is skipped with a reason. Memory is judged by phase: where a step does not fit, the lines without
 * an update run all the same, and else those of inference. After Ctrl-C (base/interrupt.h) no step
 * begins: cells have their samples so far, or a reason. All cells use the same device. ret_order
 * may be NULL. */
enum status bench_cells_run(const struct bench_options *o, struct bench_cell *cell, int cells,
                            enum bench_order *ret_order, struct arena *a);

/* Tokens of a line: a step has those of all its micro-steps, the other lines those of one. */
double bench_line_tokens(const struct bench_cell *c, enum bench_line line);
/* The speed of a line of a cell beside that of another, both of bench_cells_run with that order: by
 * pairs of one round, else by two series; per token, but an update per update. JUDGED_NOT if one
 * has no samples, or if its mean is not above zero, as that of a difference can be. */
struct judgement bench_cells_judge(const struct bench_cell *first, const struct bench_cell *second,
                                   enum bench_line line, enum bench_order order);

#endif
