/* trace_check.h - whether a text is a trace in Chrome's format, by what the format's description says of its events. */
#ifndef SUPPORT_TRACE_CHECK_H
#define SUPPORT_TRACE_CHECK_H

#include <jansson.h>
#include <stdint.h>

/* A complete event, in ns. */
struct trace_event {
    const json_t *event;
    int pid, tid;
    int64_t start, end;
};
struct trace_facts {
    json_t *trace; /* to be released */
    struct trace_event *
        event; /* complete ones, by process, row and start, the outer before the inner; to be freed */
    int events, counts; /* complete; of counters */
    int deepest;        /* how many stand in each other, at most */
};

/* NULL, or what is wrong, in a text that stays until the next call. Either way trace_forget releases the facts. */
const char *trace_check(const char *text, size_t n, struct trace_facts *ret);
void trace_forget(struct trace_facts *f);
/* Of an event's args; fails softly: NULL. */
const json_t *trace_arg(const struct trace_event *e, const char *name);
const char *trace_name(const struct trace_event *e);

#endif
