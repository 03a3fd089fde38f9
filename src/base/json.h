/* json.h - JSON with jansson: values that may be absent, and output. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/file.h"
#include "base/str.h"

#include <jansson.h>

/* null where there is no text. */
json_t *text_or_null(const char *text);
/* null for infinities and NaN, which JSON does not have. */
json_t *number_or_null(double x);
json_t *texts_json(const char *const *text, int n);
/* Both release `root`; `flags` are those of json_dumps. json_write replaces the file atomically;
 * json_print_with appends the text and a newline. */
enum status json_write(json_t *root, size_t flags, const char *path);
void json_print_with(json_t *root, size_t flags, struct str *s);

#endif
