/* variants.h - one configuration for each combination of listed values, as in
 * `--flash=false,true --dtype=float32,bfloat16`: shared by compare and profile. */
#ifndef CLI_VARIANTS_H
#define CLI_VARIANTS_H

#include "backend/backend.h"
#include "bench/bench_grid.h"

enum { VARIANTS_MOST = 16 };

struct variant {
    const char *name, *folder, *dir; /* "flash=false", the same without /, "runs/x/flash=false" */
    char *word[BENCH_AXES];          /* "--flash=false" */
    struct device device;
    int64_t bytes; /* of device memory that it takes */
};

struct variants {
    struct bench_grid grid; /* its axes are the keys that vary */
    char **common;          /* the configuration and the overrides of all variants */
    int commons;
    struct variant variant[VARIANTS_MOST];
    int n;
    struct config config; /* of the common words */
};

/* Whether any word is a list of values. */
bool variants_wanted(int argc, char *const *argv);
/* Reads CONFIG, overrides and lists. The last key varies fastest. ST_USAGE without a list. */
enum status variants_read(struct variants *v, int argc, char **argv, struct arena *a);
/* The configuration of a variant, checked; its name must do as a folder's. */
enum status variants_config(const struct variants *v, int i, struct config *ret, struct arena *a);
/* Sets device and bytes of a variant that runs the graphs of `kinds`. */
enum status variants_plan(struct variants *v, int i, const struct config *c, unsigned kinds,
                          struct arena *a);
/* The command line of a variant: "strobe", `command`, `n` words of the user's, its values of the
 * keys, and its out_dir. */
char **variants_words(const struct variants *v, int i, const char *command, char *const *word,
                      int n, struct arena *a);
/* Whether all variants fit in the memory of their devices at once, with a tenth left over. */
bool variants_fit(const struct variants *v);

#endif
