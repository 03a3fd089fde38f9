#include "backend/cpu/matmul/onednn_isa.h"

#include "base/isa.h"

#ifdef HAVE_DNNL

#include "backend/cpu/matmul/onednn2.h"

#include <oneapi/dnnl/dnnl_debug.h>
#include <string.h>

/* oneDNN's lowest limit is SSE4.1: under ISA_SSE2 it runs SSE4.1 code, or plain loops on a
 * processor without SSE4.1. ISA_PLAIN is never passed. On Arm, oneDNN takes no limit. */
static const dnnl_cpu_isa_t limits[ISA_COUNT] = {
    [ISA_AUTO] = dnnl_cpu_isa_default,
    [ISA_AMX] = dnnl_cpu_isa_avx512_core_amx,
    [ISA_AVX512_BF16] = dnnl_cpu_isa_avx512_core_bf16,
    [ISA_AVX512] = dnnl_cpu_isa_avx512_core,
    [ISA_AVX2] = dnnl_cpu_isa_avx2,
    [ISA_SSE2] = dnnl_cpu_isa_sse41,
    [ISA_PLAIN] = dnnl_cpu_isa_sse41,
};

/* The limit that oneDNN has. It starts as oneDNN's default, so that the user's ONEDNN_MAX_CPU_ISA
 * stays in force if Strobe has no limit. */
static enum isa applied = ISA_AUTO;

enum status onednn_limit(void)
{
    enum isa limit = isa_limited();
    /* Under ISA_PLAIN no kernel uses oneDNN. */
    if (limit == applied || limit == ISA_PLAIN || limit == ISA_NEON) return ST_OK;
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
    if (isa_exists(ISA_NEON)) return "aarch64"; /* oneDNN has names for the sets of x86 only */
    static const char prefix[] = "cpu_isa_";
    const char *name = dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa());
    return strncmp(name, prefix, strlen(prefix)) ? name : name + strlen(prefix);
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
