/* lenient.h - text and JSON that may be slightly broken, made fit to be shown. */
#ifndef PRESENT_LENIENT_H
#define PRESENT_LENIENT_H

#include "base/arena.h"

struct json_t;

/* A copy of `n` bytes in which everything that is not UTF-8 became U+FFFD: a model samples bytes. */
char *lenient_utf8(const char *text, int64_t n, struct arena *a);
/* One JSON object from `n` bytes, NULL if it is none. The words NaN and Infinity, which JSON lacks,
 * count as null. The caller releases it with json_decref. */
struct json_t *lenient_object(const char *text, int64_t n);
/* The number under a key; NAN if it is absent, null or no number. */
double lenient_number(const struct json_t *object, const char *key);
/* What JSON lacks becomes null. */
struct json_t *lenient_text_json(const char *text);
struct json_t *lenient_number_json(double x);

#endif
