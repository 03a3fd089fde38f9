#include "backend/cpu/cpu_kernels.h"

#include "backend/cpu/onednn.h"
#include "backend/cpu/vector/tables.h"

static const struct kernel *const onednn_tables[] = {onednn_rows, NULL};
static const struct kernel *const cast_tables[] = {cast_kernels, NULL};

#if defined(__x86_64__)
/* What -march=x86-64-v4 and -march=x86-64-v3 may use. */
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
}
static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
}
#endif

/* THE table of CPU kernels, best first: libraries, then instruction sets from the widest down, then
 * the reference that everything is compared with. */
static const struct kernel_group groups[] = {
    {onednn_tables, NULL},
#if defined(__x86_64__)
    {vector_tables_avx512, has_avx512},
    {vector_tables_avx2, has_avx2},
    {vector_tables_sse2, NULL},
#else
    {vector_tables_generic, NULL},
#endif
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
