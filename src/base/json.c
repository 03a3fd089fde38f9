#include "base/json.h"

#include "base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

json_t *texts_json(const char *const *text, int n)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(array, text_or_null(text[i]));
    return array;
}

json_t *number_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

enum status json_write(json_t *root, size_t flags, const char *path)
{
    char *text = json_dumps(root, flags);
    json_decref(root);
    BUG_IF(!text, "%s: cannot be written as JSON", path);
    enum status st = file_write(path, text, (int64_t)strlen(text));
    free(text);
    return st;
}

void json_print_with(json_t *root, size_t flags, struct str *s)
{
    char *text = json_dumps(root, flags);
    json_decref(root);
    BUG_IF(!text, "a result cannot be printed as JSON");
    str_printf(s, "%s\n", text);
    free(text);
}
