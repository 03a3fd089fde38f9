#include "base/json.h"

#include <math.h>

json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

json_t *number_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}
