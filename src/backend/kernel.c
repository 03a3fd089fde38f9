#include "backend/kernel.h"

static bool types_match(const struct type *t, int n, enum dtype act, const char *letters)
{
    for (int i = 0; i < n; i++) {
        char letter = letters[i];
        if (letter == '8' && dtype_is_float8(t[i].dtype)) continue;
        enum dtype wanted = letter == 'a'   ? act
                            : letter == 'f' ? DT_F32
                            : letter == 'b' ? DT_BF16
                                            : DT_I32;
        if (!letter || t[i].dtype != wanted) return false;
    }
    return true;
}

bool types_are(const struct kernel_call *c, enum dtype act, const char *in, const char *out)
{
    if (act == DT_COUNT) return types_are(c, DT_F32, in, out) || types_are(c, DT_BF16, in, out);
    return types_match(c->in_type, c->n_in, act, in) &&
           types_match(c->out_type, c->n_out, act, out);
}

bool kernel_fits(const struct kernel *k, const struct kernel_call *c)
{
    return (!k->in || types_are(c, k->act, k->in, k->out)) && (!k->fits || k->fits(c));
}
