/* list.h - reads options that are lists: "64,128", "64x64,128x64", "true,false". */
#ifndef CLI_LIST_H
#define CLI_LIST_H

#include <stdint.h>

/* Reads one size, "4096" or "4096x1024": `n` numbers of at least 1. Returns what follows it, a
 * comma or the end; NULL: malformed. */
const char *list_size(const char *at, int n, int64_t *ret);
/* Reads numbers of at least 1, separated by commas. Returns how many; 0: malformed, or more than
 * `most`. */
int list_numbers(const char *words, int64_t *ret, int most);
/* Reads words out of `known`, separated by commas, each at most once: their indices in the given
 * order. Returns how many; 0: malformed. */
int list_words(const char *words, const char *const *known, int n, int *ret);

#endif
