/* An emulated NVIDIA profiler: NVTX opens it (NVTX_INJECTION64_PATH), and it prints each range with
 * its depth. */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

static int depth, domain;

static nvtxDomainHandle_t create(const char *name)
{
    fprintf(stderr, "listener: %s\n", name);
    return (nvtxDomainHandle_t)&domain;
}

static int push(nvtxDomainHandle_t d, const nvtxEventAttributes_t *range)
{
    fprintf(stderr, "listener: %d %s%s\n", depth, range->message.ascii,
            d == (nvtxDomainHandle_t)&domain ? "" : ", of another domain");
    return depth++;
}

static int pop(nvtxDomainHandle_t d)
{
    (void)d;
    return --depth;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
    NvtxFunctionTable table;
    unsigned n = 0;
    const NvtxExportTableCallbacks *t = get(NVTX_ETID_CALLBACKS);
    if (!t || !t->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &n)) return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    return 1;
}
