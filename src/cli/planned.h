/* planned.h - what graph, plan and memory share: they look at a run without running it, so they need
 * neither the data set nor the memory. */
#ifndef CLI_PLANNED_H
#define CLI_PLANNED_H

#include "engine/program.h"

/* The option of commands that compile. */
#define PLANNED_TUNING(to)                                                            \
    {                                                                                 \
        "tuning", OPT_TEXT, (to), "FILE",                                             \
            "compile for the GPU of a tuning file, with its entries (this machine's)" \
    }

struct planned {
    struct arena arena;
    struct config config;
    int64_t vocab;
    const char *
        tuning_file; /* --tuning: its table and its device are compiled for; NULL: those kept here */
    struct tuning tuning;
    struct program program; /* after planned_plan, planned_train or planned_graph */
};

/* The size of the vocabulary, 0 of a model that reads no text: the user's word for it (`given`); 0: that of the data set, or, where it was
 * not made yet, the size that such a data set has as a rule, which is then said. */
enum status planned_vocabulary(const struct config *c, int64_t given, int64_t *ret,
                               struct arena *a);
/* Reads and checks what is left of the words: CONFIG and overrides. `vocab` as above. */
enum status planned_read(struct planned *p, int argc, char **argv, int64_t vocab);
/* Compiles the graphs of `kinds` (a mask, 1 << kind). `backend` NULL: the one that would train. */
enum status planned_plan(struct planned *p, unsigned kinds, const char *backend);
/* The same of the graphs that training needs. */
enum status planned_train(struct planned *p, const char *backend);
/* One graph, as it stands after that pass (program.h). */
enum status planned_graph(struct planned *p, enum graph_kind kind, const char *after);
void planned_release(struct planned *p);

/* "fusion=full flash=true dtype=float32 batch_size=12 block_size=64 vocabulary=65" */
const char *planned_words(struct planned *p);

#endif
