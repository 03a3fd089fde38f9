#include "backend/cpu/vector/common.h"

bool VEC(all_f32)(const struct kernel_call *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (c->in_type[i].dtype != DT_F32 && c->in_type[i].dtype != DT_I32) return false;
    for (int i = 0; i < c->n_out; i++)
        if (c->out_type[i].dtype != DT_F32) return false;
    return true;
}

static bool types_match(const struct type *t, int n, enum dtype act, const char *letters)
{
    for (int i = 0; i < n; i++) {
        char letter = letters[i];
        if (!letter || t[i].dtype != (letter == 'a' ? act : letter == 'f' ? DT_F32 : DT_I32))
            return false;
    }
    return true;
}

bool VEC(types_are)(const struct kernel_call *c, enum dtype act, const char *in, const char *out)
{
    return types_match(c->in_type, c->n_in, act, in) &&
           types_match(c->out_type, c->n_out, act, out);
}

enum status VEC(over_rows)(const struct kernel_call *c, int64_t weight, range_fn fn)
{
    const struct type *x = &c->in_type[0];
    parallel_ranges(c, type_rows(x), 1, weight * type_columns(x), fn);
    return ST_OK;
}
