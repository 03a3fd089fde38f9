/* json.h - values of JSON that may be absent, with jansson. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>

/* null where there is no text. */
json_t *text_or_null(const char *text);
/* null for infinities and NaN, which JSON does not have. */
json_t *number_or_null(double x);
json_t *texts_json(const char *const *text, int n);

#endif
