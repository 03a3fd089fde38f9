#include "backend/range.h"

#ifdef HAVE_NVTX
#include <nvtx3/nvToolsExt.h>

/* Returns the NVTX domain of this program, or NULL if no profiler is attached. */
static nvtxDomainHandle_t domain(void)
{
    static nvtxDomainHandle_t handle;
    static bool tried;
    if (!tried) handle = nvtxDomainCreateA("Strobe");
    tried = true;
    return handle;
}

bool range_active(void)
{
    return domain() != NULL;
}

void range_push(const char *name)
{
    if (!domain()) return;
    const nvtxEventAttributes_t range = {.version = NVTX_VERSION,
                                         .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                         .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                         .message.ascii = name};
    nvtxDomainRangePushEx(domain(), &range);
}

void range_pop(void)
{
    if (domain()) nvtxDomainRangePop(domain());
}

#else

bool range_active(void)
{
    return false;
}

void range_push(const char *) {}

void range_pop(void) {}
#endif
