#include "backend/cpu/cpu_kernels.h"

#include "backend/cpu/bf16/tables.h"
#include "backend/cpu/matmul/onednn.h"
#include "backend/cpu/vector/tables.h"

static const struct kernel *const onednn_tables[] = {onednn_rows, NULL};
static const struct kernel *const mixed_tables[] = {cast_kernels, chain_kernels, float8_kernels,
                                                    collective_kernels, NULL};

/* THE table of CPU kernels, best first: oneDNN, then the instruction sets from the widest down,
 * then the reference in float and in double. All other kernels are compared with the reference. The
 * last group has the reference kernels that serve all types (casts, chains, float8), and
 * collectives. */
static const struct kernel_group groups[] = {
    {onednn_tables, ISA_AUTO},
#if defined(__x86_64__)
    {bf16_tables_amx, ISA_AMX},
    {bf16_tables_avx512_bf16, ISA_AVX512_BF16},
    {vector_tables_avx512_bf16, ISA_AVX512_BF16},
    {vector_tables_avx512, ISA_AVX512},
    {vector_tables_avx2, ISA_AVX2},
    {vector_tables_sse2, ISA_SSE2},
#elif defined(__aarch64__)
    {vector_tables_neon, ISA_NEON},
#endif
    {vector_tables_plain, ISA_PLAIN},
    {ref_f32_tables, ISA_PLAIN},
    {ref_f64_tables, ISA_PLAIN},
    {mixed_tables, ISA_PLAIN},
};

/* A library (ISA_AUTO) runs unless the limit is ISA_PLAIN. */
static bool available(const struct kernel_group *g)
{
    return g->isa == ISA_AUTO ? isa_limited() != ISA_PLAIN : isa_allows(g->isa);
}

const struct kernel *cpu_kernel(int op, const struct kernel_call *call, int n)
{
    for (int g = 0; g < COUNT_OF(groups); g++) {
        if (!available(&groups[g])) continue;
        for (const struct kernel *const *table = groups[g].tables; *table; table++)
            for (const struct kernel *k = *table; k->run; k++)
                if ((int)k->op == op && kernel_fits(k, call) && n-- == 0) return k;
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
