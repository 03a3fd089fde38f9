#include "base/json.h"

#include <math.h>

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
