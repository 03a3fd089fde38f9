/* Measures the link between host and GPU by copies of page-locked memory in both directions. */
#include "base/stats.h"
#include "lab/memory/memory.h"

#include <math.h>
#include <string.h>

static const int64_t LINK_BYTES = 64 << 20;

/* The median time of a copy of `bytes` over the host link, timed by events of the stream. */
static enum status time_copy(const struct backend *b, void *context, void *device, void *host,
                             int64_t bytes, bool down, double *ret_ms)
{
    enum { TRIES = 7, FROM = 0, TO = 1 };
    double ms[TRIES];
    for (int i = -1; i < TRIES; i++) {
        TRY(b->stream.event_record(context, FROM));
        TRY(down ? b->pinned->to_host(context, host, device, bytes)
                 : b->pinned->to_device(context, device, host, bytes));
        TRY(b->stream.event_record(context, TO));
        TRY(b->stream.sync(context));
        TRY(b->stream.event_elapsed(context, FROM, TO, &ms[i < 0 ? 0 : i]));
    }
    *ret_ms = stats_of(ms, TRIES).median;
    return ST_OK;
}

enum status memory_run_link(struct memory_run *r, void *context, void *device, int64_t most)
{
    const struct backend *b = r->options->device.backend;
    const struct backend_pinned *pinned = b->pinned;
    int64_t bytes = min_i64(LINK_BYTES, most);
    void *host = NULL;
    double up = NAN, down = NAN;
    enum status st = ST_OK;
    if (!pinned) return ST_OK;
    TRY(pinned->alloc(context, bytes, &host));
    uint32_t *word = host;
    for (int64_t i = 0; i < bytes / 4; i++) word[i] = memory_word((uint64_t)i);
    TRY_OUT(st, time_copy(b, context, device, host, bytes, false, &up));
    memset(host, 0, (size_t)bytes);
    TRY_OUT(st, time_copy(b, context, device, host, bytes, true, &down));
    uint32_t sum = 0;
    for (int64_t i = 0; i < bytes / 4; i++) sum += word[i];
    if (sum != memory_sum(0, (uint64_t)bytes / 4)) {
        st = fail(ST_NUMERIC, "copies over the host link changed data; this is an error of Strobe, "
                              "of the driver or of the link");
        goto out;
    }
    r->host_link = memory_level_unknown("host link");
    r->host_link.rate = (double)bytes / (up * 1e-3);
    r->host_link.write_rate = (double)bytes / (down * 1e-3);
    r->host_link.note = "page-locked memory; read: host to GPU, written: GPU to host";
out:
    pinned->free(context, host);
    return st;
}
