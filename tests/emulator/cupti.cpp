/* CUPTI, as far as the program uses it: records of the emulated device's work, in buffers of the
 * program, with the times that streams.cpp computes. */
#include "engine.hpp"
#include "streams.hpp"

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_result.h>
#include <cupti_version.h>

#include <algorithm>
#include <pthread.h>
#include <set>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <vector>

namespace
{

/* CUPTI's clock differs from the program's. */
const uint64_t BEGINNING = 1700000000000000000;

std::set<CUpti_ActivityKind> enabled;
std::vector<uint64_t> pushed; /* of CUSTOM0, the only known kind */
CUpti_BuffersCallbackRequestFunc request;
CUpti_BuffersCallbackCompleteFunc complete;
uint8_t *buffer;
size_t room, filled, lost;
long long counted;
std::vector<const char *> names; /* of calls, by their number */
/* Both clocks when the program last asked for the time. Calls run by the host's. */
long long asked_ns;
uint64_t asked_time;

bool is_on(CUpti_ActivityKind kind)
{
    return enabled.count(kind) != 0;
}

uint64_t time_of(double ms)
{
    return BEGINNING + (uint64_t)(ms * 1e6);
}

void hand_over()
{
    uint8_t *full = buffer;
    buffer = NULL;
    if (full) complete(NULL, 0, full, room, filled);
}

/* Every N-th record is dropped, if the environment requests it. */
void write(const void *record, size_t bytes)
{
    long long drop = emu_number("EMU_CUPTI_DROP", 0);
    if (emu_number("EMU_CUPTI_SILENT", 0)) return;
    if (drop && ++counted % drop == 0) {
        lost++;
        return;
    }
    if (buffer && filled + bytes > room) hand_over();
    if (!buffer) {
        size_t most = 0;
        request(&buffer, &room, &most);
        filled = 0;
    }
    if (!buffer || filled + bytes > room) {
        lost++;
        return;
    }
    memcpy(buffer + filled, record, bytes);
    filled += bytes;
}

/* A call has the program's number only if calls are recorded, and that record comes first. */
void called(unsigned call)
{
    if (!is_on(CUPTI_ACTIVITY_KIND_DRIVER)) return;
    if (is_on(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) && !pushed.empty()) {
        CUpti_ActivityExternalCorrelation e = {};
        e.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
        e.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
        e.externalId = pushed.back();
        e.correlationId = call;
        write(&e, sizeof e);
    }
}

/* Calls of libraries, whose names begin with "cuda", are of the runtime. */
void returned(const char *name, long long from_ns, long long to_ns)
{
    CUpti_ActivityAPI a = {};
    a.kind = strncmp(name, "cuda", 4) ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME;
    if (!is_on(a.kind)) return;
    auto at = std::find_if(names.begin(), names.end(),
                           [=](const char *known) { return !strcmp(known, name); });
    a.cbid = (CUpti_CallbackId)(at - names.begin());
    if (at == names.end()) names.push_back(name);
    a.threadId = (uint32_t)pthread_self();
    a.start = asked_time + (uint64_t)(from_ns - asked_ns);
    a.end = asked_time + (uint64_t)(to_ns - asked_ns);
    write(&a, sizeof a);
}

template <typename record> void write_done(record r, CUpti_ActivityKind kind, const emu_done &d)
{
    if (!is_on(kind)) return;
    r.kind = kind;
    r.start = time_of(d.from_ms);
    r.end = time_of(d.to_ms);
    r.correlationId = d.call;
    r.graphId = d.recording;
    r.graphNodeId = d.node;
    write(&r, sizeof r);
}

void done(const emu_done &d)
{
    if (!d.seen && emu_number("EMU_CUPTI_LATE", 0)) return;
    if (d.what.kind == EMU_KERNEL) {
        CUpti_ActivityKernel10 k = {};
        k.name = d.what.name;
        write_done(k, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, d);
    } else if (d.what.kind == EMU_COPY) {
        CUpti_ActivityMemcpy6 c = {};
        c.copyKind = (uint8_t)d.what.direction;
        c.bytes = d.what.bytes;
        write_done(c, CUPTI_ACTIVITY_KIND_MEMCPY, d);
    } else {
        CUpti_ActivityMemset4 f = {};
        f.bytes = d.what.bytes;
        write_done(f, CUPTI_ACTIVITY_KIND_MEMSET, d);
    }
}

const emu_watcher watcher = {called, done, returned};

size_t size_of(CUpti_ActivityKind kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
        return sizeof(CUpti_ActivityAPI);
    default:
        return 0;
    }
}

} // namespace

CUptiResult cuptiGetVersion(uint32_t *version)
{
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult r, const char **words)
{
    *words = r == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
                 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
             : r == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
             : r == CUPTI_ERROR_INVALID_PARAMETER       ? "CUPTI_ERROR_INVALID_PARAMETER"
                                                        : "CUPTI_ERROR_UNKNOWN";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *time)
{
    asked_ns = emu_host_ns();
    *time = asked_time = time_of(emu_now_ms());
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain, uint32_t number, const char **name)
{
    if (number >= names.size()) return CUPTI_ERROR_INVALID_PARAMETER;
    *name = names[number];
    return CUPTI_SUCCESS;
}

bool emu_tracing()
{
    return !enabled.empty();
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    long long refuse = emu_number("EMU_CUPTI_REFUSE", 0);
    if (refuse && kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) return (CUptiResult)refuse;
    enabled.insert(kind);
    emu_watch(&watcher);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    enabled.erase(kind);
    if (enabled.empty()) emu_watch(NULL);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc ask,
                                           CUpti_BuffersCallbackCompleteFunc give)
{
    request = ask;
    complete = give;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t)
{
    if (!complete) return CUPTI_ERROR_INVALID_OPERATION;
    hand_over();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t *dropped)
{
    *dropped = lost;
    lost = 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *from, size_t bytes, CUpti_Activity **record)
{
    uint8_t *at = *record ? (uint8_t *)*record + size_of((*record)->kind) : from;
    if (at >= from + bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)at;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t id)
{
    pushed.push_back(id);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t *last)
{
    if (pushed.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
    if (last) *last = pushed.back();
    pushed.pop_back();
    return CUPTI_SUCCESS;
}
