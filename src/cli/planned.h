/* planned.h - shared by the commands graph, plan and memory, which compile a run without running
 * it: they need neither the data set nor its memory. */
#ifndef CLI_PLANNED_H
#define CLI_PLANNED_H

#include "engine/program.h"

/* The option --tuning. */
#define PLANNED_TUNING(to)                                                                     \
    {                                                                                          \
        "tuning", OPT_TEXT, (to), "FILE",                                                      \
            "compile for the GPU of a tuning file, with its entries (default: this machine's)" \
    }

struct planned {
    struct arena *arena;
    struct config config;
    int64_t vocab;
    /* --tuning: compile for the device of this file, with its table; NULL: this machine's */
    const char *tuning_file;
    struct tuning tuning;
    struct program program; /* after planned_plan, planned_training_plans or planned_graph */
};

/* The vocabulary size: `given`, or if that is 0 the data set's. If the data set does not exist, the
 * usual size for its name, with a message. *ret is 0 for a model that reads no text. */
enum status planned_vocabulary(const struct config *c, int64_t given, int64_t *ret,
                               struct arena *a);
/* Reads and checks the remaining arguments: CONFIG and overrides. `vocab` as above; `tuning`: the
 * file, NULL: none. Results live in `a`. */
enum status planned_read(struct planned *p, int argc, char **argv, int64_t vocab,
                         const char *tuning, struct arena *a);
/* Compiles the graphs of `kinds` (a mask, 1 << kind). `backend` NULL: the configuration's. */
enum status planned_plan(struct planned *p, unsigned kinds, const char *backend);
/* The same for the graphs that training needs. */
enum status planned_training_plans(struct planned *p, const char *backend);
/* Builds one graph up to and including that pass (program.h). */
enum status planned_graph(struct planned *p, enum graph_kind kind, const char *after);

/* "fusion=full flash=true dtype=float32 batch_size=12 block_size=64 vocabulary=65" */
const char *planned_words(struct planned *p);

#endif
