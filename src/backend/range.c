#include "backend/range.h"

#ifdef HAVE_NVTX
#include <nvtx3/nvToolsExt.h>

/* Ranges of a domain of our own. Nobody is attached: there is no such thing. */
static nvtxDomainHandle_t domain(void)
{
    static nvtxDomainHandle_t made;
    static bool asked;
    if (!asked) made = nvtxDomainCreateA("Strobe");
    asked = true;
    return made;
}

bool range_heard(void)
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

bool range_heard(void)
{
    return false;
}

void range_push(const char *name)
{
    (void)name;
}

void range_pop(void) {}
#endif
