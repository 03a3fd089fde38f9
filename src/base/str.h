/* str.h - a growing string buffer for text output. A zeroed struct is an empty string.
 *
 * The owner calls str_release. `data` may be NULL; str_text never returns NULL. Running out of
 * memory ends the program in one sentence (heap.h). */
#ifndef BASE_STR_H
#define BASE_STR_H

#include "base/base.h"

struct str {
    char *data;
    int64_t len, capacity;
};

void str_printf(struct str *s, const char *format, ...) PRINTF_LIKE(2, 3);
void str_append(struct str *s, const char *text);
void str_append_bytes(struct str *s, const void *bytes, int64_t n);
/* Returns the address of `n` free bytes at the end; the caller adds the bytes written to len. */
char *str_reserve(struct str *s, int64_t n);
const char *str_text(const struct str *s);
void str_release(struct str *s);

/* These write into the caller's buffer of 32 bytes and return it. 1234567 -> "1,234,567". */
const char *str_thousands(char *buffer, int64_t value);
/* `digits` significant digits without an exponent: 0.01234 -> "0.0123", 2197.4 -> "2,200". */
const char *str_number(char *buffer, double x, int digits);
/* A loss with four decimals; below 0.01 with four significant digits: 1.234e-05. */
const char *str_loss(char *buffer, double loss);
/* 1536 -> "1.5 KiB" */
const char *str_bytes(char *buffer, double bytes);
/* FLOPs with four significant digits: 3.98e14 -> "398 TFLOP" */
const char *str_flops(char *buffer, double flops);
/* Parses "80GiB", "1.5 gb", "512 MiB", "640B"; false without a unit or if the size is too large. */
bool str_read_bytes(const char *text, int64_t *ret_bytes);
/* Whether two texts are equal; either may be NULL. */
bool str_same(const char *a, const char *b);
/* The edit distance of two words (Levenshtein), for "did you mean". */
int str_distance(const char *a, const char *b);

#endif
