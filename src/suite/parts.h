/* parts.h - what suites are made of: sizes of models, words that become configurations; private to suite/. */
#ifndef SUITE_PARTS_H
#define SUITE_PARTS_H

#include "suite/suite.h"

/* A configuration file of texts.h, and keys over it with blanks between: "n_layer=2 n_head=2". */
struct suite_size {
    const char *name, *file, *words;
    bool asked; /* run only where --size names it */
};
/* What is smaller, and the keys that make it something else ("n_layer n_embd"; also "size", "iters"); "": none does. */
struct suite_small {
    const char *keys, *what;
};
enum { SUITE_SMALLS = 5 };
/* Of the models below and of their lengths. */
extern const struct suite_small cs336_smaller[];
/* Both end with name == NULL. */
extern const struct suite_size cs336_sizes[], cs336_small_sizes[];
extern const char cs336_words[]; /* what all sizes share, over their files */
enum { CS336_VOCABULARY = 10000 };

/* True where the smaller variant is to run: on a CPU, unless the published size is asked for. */
enum status suite_is_small(const struct suite_request *r, bool *ret);
/* Says so, on the sheet: of SUITE_SMALLS things at most, those that the request leaves as they are. */
void suite_say_small(struct sheet *s, const struct suite_request *r,
                     const struct suite_small *small, struct arena *a);
/* Sizes that the request names, of a list: as many as *ret_n, in `a`. */
enum status suite_sizes(const struct suite_request *r, const struct suite_size *all,
                        const struct suite_size **ret, int *ret_n, struct arena *a);

/* Defaults, then the file, then these words, then the request's that are no lists. `file` and `more` may be NULL. */
enum status suite_config(const struct suite_request *r, const char *file, const char *words,
                         const char *more, struct config *ret, struct arena *a);
/* The vocabulary of a configuration: its vocab_size, else the suite's own. */
int64_t suite_vocabulary(const struct config *c, int64_t own);
/* The values of a key: those of the request, else of `words` ("128,256"). */
enum status suite_values(const struct suite_request *r, const char *key, const char *words,
                         struct bench_axis *ret, struct arena *a);
/* The same as whole numbers that rise; `most` of them, returns how many by *ret_n. */
enum status suite_lengths(const struct suite_request *r, const char *key, const char *words,
                          int most, int64_t *ret, int *ret_n, struct arena *a);
/* A list of the request whose key is none of `keys` (ends with NULL) is ST_USAGE. */
enum status suite_check_lists(const struct suite_request *r, const char *const *keys);
/* Ctrl-C was noted (base/interrupt.h): the suite ends with what it has. */
bool suite_stopped(void);
/* What stands in a row of what was not measured. */
extern const char suite_not_reached[];
/* ST_INTERRUPTED where it was stopped before anything was measured. */
enum status suite_check_stopped(bool measured);
/* Room for what runs: of the device, or the request's limit, or `limit` (0: none), whichever is least; -1: unknown. */
int64_t suite_room(const struct suite_request *r, const struct device *d, int64_t limit);

#endif
