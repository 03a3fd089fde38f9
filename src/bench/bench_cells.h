/* bench_cells.h - parts of training steps, timed for several configurations.
 *
 * A cell is a configuration; its lines are the parts of its step that are timed: one sample a step, by the host's clock from before
 * a part is started to when the device is done with it; what goes in is fed before. With replay=true each part is a recording of its own
 * that its second run makes and plays (so two steps of warm-up leave it out). No cell is favoured by the drift of a clock: cells give their samples in rounds, or each runs twice, the second time
 * in reversed order. */
#ifndef BENCH_BENCH_CELLS_H
#define BENCH_BENCH_CELLS_H

#include "base/stats.h"
#include "config/config.h"

enum bench_line {
    BENCH_INFERENCE,  /* the loss alone, with nothing saved */
    BENCH_FORWARD,    /* of training: up to the first kernel of the backward pass */
    BENCH_BOTH,       /* forward and backward in one */
    BENCH_DIFFERENCE, /* the backward pass as the difference of these two, step by step */
    BENCH_BACKWARD, /* on its own: forward runs untimed, and is waited for, before the clock starts */
    BENCH_UPDATE,   /* norm of the gradient, clipping, AdamW */
    BENCH_STEP,     /* a training step, as training runs it, waited for */
    BENCH_LINES
};
/* "forward", "forward + backward", "backward, by difference", "backward, alone" ... */
const char *bench_line_name(enum bench_line line);
/* Lines, a mask, of a word of --phase: inference, forward, backward, update or step; 0: it is none. */
unsigned bench_lines_of(const char *word, int64_t length);

/* The one whose loss a cell has: step, else forward and backward, else inference; BENCH_LINES: none makes one. */
enum bench_line bench_line_of_loss(unsigned lines);

/* In which order cells give their samples. */
enum bench_order {
    BENCH_AUTO,   /* by the rules below */
    BENCH_ROUNDS, /* round by round, a sample each; nobody comes after the same one every time */
    BENCH_TWICE, /* one after the other, then again in reversed order, half of the samples each time */
    BENCH_ONCE, /* one after the other; where the first steps are what is looked at */
    BENCH_ORDERS
};
/* "auto", "rounds", "twice", "once" */
const char *bench_order_name(enum bench_order order);

struct bench_cell {
    struct config config;
    int64_t vocab;
    unsigned lines; /* 1 << BENCH_FORWARD ... */
    int warmup, steps;
    /* results */
    const char *reason; /* why it was not run, which may be known before; NULL: it was */
    int64_t bytes;      /* of memory that its plans take; 0: there are none */
    int64_t tokens;     /* of a step */
    double loss;        /* of the first run of that line; 0: there is none */
    struct {
        double first_ms; /* the very first, whether it counts or not */
        struct stats ms; /* of those behind the warm-up */
    } line[BENCH_LINES];
};

struct bench_options {
    enum bench_order
        order; /* BENCH_AUTO: ONCE where warm-ups differ or one is none; ROUNDS on a host that computes itself,
                               holds all cells at once and has as many threads for each; else TWICE: on a GPU the heat of a large cell is in the clocks of the next */
    int64_t limit; /* bytes of memory, as if there were no more; 0: what is free */
    void (*each)(void *user, double share, const char *what); /* 0 ... 1; NULL: none */
    void *user;
    const char *(*name)(void *user, const struct bench_cell *c); /* of a cell, for `what` */
};

/* Cells that need more memory than there is, or what the device has not, say so and are not tried; where a device has none left
 * within a step, that is the cell's reason. After a Ctrl-C that was noted (base/interrupt.h) no step begins: cells have the
 * samples that they gave until then, or a reason. All cells are of one device. ret_order may be NULL. */
enum status bench_cells_run(const struct bench_options *o, struct bench_cell *cell, int cells,
                            enum bench_order *ret_order, struct arena *a);
/* Plans a cell: leaves `bytes` and, where it cannot be run within `room` bytes (-1: unknown, no limit), `reason`; `limited`: the room
 * is the user's limit. `flops` of all lines once, NULL: not wanted. */
enum status bench_cell_plan(struct bench_cell *c, int64_t room, bool limited, double *ret_flops,
                            struct arena *a);

#endif
