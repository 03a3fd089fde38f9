/* lenient.h - reads text and JSON that may be slightly broken. */
#ifndef BASE_LENIENT_H
#define BASE_LENIENT_H

#include "base/arena.h"

struct json_t;

/* A copy of `n` arbitrary bytes, with U+FFFD in place of invalid UTF-8. */
char *lenient_utf8(const char *text, int64_t n, struct arena *a);
/* Parses one JSON object of `n` bytes; NULL if it is malformed. NaN and Infinity, which JSON
 * lacks, are read as null. The caller releases it with json_decref. */
struct json_t *lenient_object(const char *text, int64_t n);
/* The number at `key`; NAN if it is absent, null or not a number. */
double lenient_number(const struct json_t *object, const char *key);
/* A copy of the text at `key`; NULL if it is absent or not a text. */
const char *lenient_text(const struct json_t *object, const char *key, struct arena *a);
/* Whether a number is an integer from 0 to 2^53; a double represents all of them exactly. */
bool lenient_is_count(double x);

#endif
