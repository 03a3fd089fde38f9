#include "profile/profile.h"

#include <string.h>

static bool within(const char *scope, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = scope; (at = strstr(at, word)); at += n)
        if ((at == scope || at[-1] == '.') && (at[n] == '\0' || at[n] == '.')) return true;
    return false;
}

/* Element-wise operators and sums belong to the family of the layer that contains them. */
enum family family_of(const struct node *n, bool primitive)
{
    enum family family = op_def(n->op)->family;
    if (family != FAMILY_BY_PLACE) return family;
    if (n->phase == PHASE_UPDATE) return FAMILY_OPTIMIZER;
    if (within(n->scope, "loss")) return FAMILY_LOSS;
    if (!primitive) return FAMILY_POINTWISE;
    if (within(n->scope, "softmax")) return FAMILY_SOFTMAX;
    static const char *const norms[] = {"ln_1", "ln_2", "ln_f", "ln_final", "ln"};
    for (int i = 0; i < COUNT_OF(norms); i++)
        if (within(n->scope, norms[i])) return FAMILY_NORMS;
    return FAMILY_POINTWISE;
}
