/* parts.h - parts of suites: model sizes, words that become configurations; private to suite/. */
#ifndef SUITE_PARTS_H
#define SUITE_PARTS_H

#include "suite/suite.h"

/* A configuration file of texts.h and overrides, separated by blanks: "n_layer=2 n_head=2". */
struct suite_size {
    const char *name, *file, *words;
    bool asked; /* run only if --size names it */
};
/* A reduction on a CPU, and the keys that override it ("n_layer", "size", "iters"); "": none. */
struct suite_small {
    const char *keys, *what;
};
enum { SUITE_SMALLS = 5 };
/* The reductions of the models below and of their lengths. */
extern const struct suite_small cs336_smaller[];
/* Both lists end with name == NULL. */
extern const struct suite_size cs336_sizes[], cs336_small_sizes[];
extern const char cs336_words[]; /* overrides of all sizes */
enum { CS336_VOCABULARY = 10000 };

/* Whether to run the smaller variant: on a CPU, unless --full is given or --size names a published
 * size of CS336. */
enum status suite_is_small(const struct suite_request *r, bool *ret);
/* Adds a note about the smaller variant: the reductions that the request does not override. */
void suite_say_small(struct sheet *s, const struct suite_request *r,
                     const struct suite_small *small, struct arena *a);
/* The *ret_n sizes of a list that the request names. */
enum status suite_sizes(const struct suite_request *r, const struct suite_size *all,
                        const struct suite_size **ret, int *ret_n, struct arena *a);

/* A configuration from defaults, file, words, more words, and the request's words except lists.
 * `file` and `more` may be NULL. */
enum status suite_config(const struct suite_request *r, const char *file, const char *words,
                         const char *more, struct config *ret, struct arena *a);
/* The vocabulary of a configuration: its vocab_size, otherwise `own`, the default of the suite. */
int64_t suite_vocabulary(const struct config *c, int64_t own);
/* Reports progress, 0 ... 1, if the request asks for it. */
void suite_show(const struct suite_request *r, double share, const char *what);
/* Whether a word of a request, "--flash=true", sets that key. */
bool suite_word_sets(const char *word, const char *key);
/* The values of a key: of the request, otherwise of `words` ("128,256"). */
enum status suite_values(const struct suite_request *r, const char *key, const char *words,
                         struct bench_axis *ret, struct arena *a);
/* The same as increasing integers, at most `most`. */
enum status suite_lengths(const struct suite_request *r, const char *key, const char *words,
                          int most, int64_t *ret, int *ret_n, struct arena *a);
/* ST_USAGE if the request has a list for a key that is not in `keys` (ends with NULL). */
enum status suite_check_lists(const struct suite_request *r, const char *const *keys);
/* Whether Ctrl-C was noted (base/interrupt.h): the suite ends with the results so far. */
bool suite_stopped(void);
/* The note in a row that was not measured. */
extern const char suite_not_reached[];
/* ST_INTERRUPTED if the suite was stopped before anything was measured. */
enum status suite_check_stopped(bool measured);
/* Memory that a cell may use: the minimum of the free memory of the device and of the request's
 * limit, or else `limit` (0: none); -1: unknown. */
int64_t suite_free_memory(const struct suite_request *r, const struct device *d, int64_t limit);

#endif
