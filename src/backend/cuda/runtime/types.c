#include "backend/cuda/runtime/types.h"

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

bool types_are(const struct kernel_call *c, const char *in, const char *out)
{
    for (enum dtype act = DT_F32; act <= DT_BF16; act += DT_BF16 - DT_F32)
        if (types_match(c->in_type, c->n_in, act, in) &&
            types_match(c->out_type, c->n_out, act, out))
            return true;
    return false;
}
