#include "backend/cpu/cpu_kernels.h"

static const struct kernel *const cast_tables[] = {cast_kernels, NULL};

/* THE table of CPU kernels, best first: libraries, then instruction sets from the widest down, then
 * the reference that everything is compared with. */
static const struct kernel_group groups[] = {
    {ref_f32_tables, NULL},
    {ref_f64_tables, NULL},
    {cast_tables, NULL},
};

const struct kernel *cpu_kernel(int op, const struct kernel_call *call, int n)
{
    for (int g = 0; g < COUNT_OF(groups); g++) {
        if (groups[g].available && !groups[g].available()) continue;
        for (const struct kernel *const *table = groups[g].tables; *table; table++)
            for (const struct kernel *k = *table; k->run; k++)
                if ((int)k->op == op && (!k->fits || k->fits(call)) && n-- == 0) return k;
    }
    return NULL;
}

const struct kernel *cpu_row(int i)
{
    for (int g = 0; g < COUNT_OF(groups); g++)
        for (const struct kernel *const *table = groups[g].tables; *table; table++)
            for (const struct kernel *k = *table; k->run; k++)
                if (i-- == 0) return k;
    return NULL;
}
