#include "backend/cpu/matmul/onednn_isa.h"

#include "base/isa.h"

#ifdef HAVE_DNNL

#include <oneapi/dnnl/dnnl.h>

/* SSE4.1 is the lowest set that oneDNN generates code for; below it runs plain loops. */
static const dnnl_cpu_isa_t limits[ISA_COUNT] = {
    [ISA_AUTO] = dnnl_cpu_isa_all,
    [ISA_AMX] = dnnl_cpu_isa_avx512_core_amx,
    [ISA_AVX512_BF16] = dnnl_cpu_isa_avx512_core_bf16,
    [ISA_AVX512] = dnnl_cpu_isa_avx512_core,
    [ISA_AVX2] = dnnl_cpu_isa_avx2,
    [ISA_SSE2] = dnnl_cpu_isa_sse41,
    [ISA_PLAIN] = dnnl_cpu_isa_sse41,
};

static const struct {
    dnnl_cpu_isa_t isa;
    const char *name;
} names[] = {
    {dnnl_cpu_isa_avx512_core_amx, "avx512_core_amx"},
    {dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16"},
    {dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni"},
    {dnnl_cpu_isa_avx512_core, "avx512_core"},
    {dnnl_cpu_isa_avx2_vnni, "avx2_vnni"},
    {dnnl_cpu_isa_avx2, "avx2"},
    {dnnl_cpu_isa_avx, "avx"},
    {dnnl_cpu_isa_sse41, "sse41"},
};

/* The library's own default, so without a limit the user's ONEDNN_MAX_CPU_ISA stays in force. */
static enum isa applied = ISA_AUTO;

enum status onednn_limit(void)
{
    enum isa limit = isa_limited();
    if (limit == applied || limit == ISA_PLAIN) return ST_OK; /* plain does not use the library */
    if (dnnl_set_max_cpu_isa(limits[limit]) != dnnl_success)
        return fail(
            ST_UNSUPPORTED,
            "isa=%s: oneDNN has already fixed its instruction set; a process cannot change it",
            isa_words[limit]);
    applied = limit;
    return ST_OK;
}

const char *onednn_isa(void)
{
    if (isa_limited() == ISA_PLAIN) return NULL;
    dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    for (int i = 0; i < COUNT_OF(names); i++)
        if (names[i].isa == isa) return names[i].name;
    return "unknown";
}

#else

enum status onednn_limit(void)
{
    return ST_OK;
}

const char *onednn_isa(void)
{
    return NULL;
}

#endif
