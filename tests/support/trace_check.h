/* trace_check.h - checks whether a text is a trace in Chrome's format. */
#ifndef SUPPORT_TRACE_CHECK_H
#define SUPPORT_TRACE_CHECK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* A complete event, in ns. */
struct trace_event {
    const json_t *event;
    int pid, tid;
    int64_t start, end;
};
/* One end of an arrow. */
struct trace_flow {
    const json_t *event;
    int64_t id;
    bool ends;
    int pid, tid;
    int64_t at; /* ns */
};
struct trace_facts {
    json_t *trace; /* to be released */
    struct trace_event
        *event; /* complete events by process, row and start, outer before inner; to be freed */
    struct trace_flow *flow; /* to be freed */
    int flows;
    int events, counts; /* the numbers of complete events and of counter events */
    int deepest;        /* the deepest nesting */
};

/* NULL, or a description of the error, valid until the next call. Either way trace_forget releases
 * the facts. */
const char *trace_check(const char *text, size_t n, struct trace_facts *ret);
void trace_forget(struct trace_facts *f);
/* The innermost complete event of a row at a time; NULL: none. */
const struct trace_event *trace_at(const struct trace_facts *f, int pid, int tid, int64_t at);
/* A field of an event's args; NULL if it is missing. */
const json_t *trace_arg(const struct trace_event *e, const char *name);
const char *trace_name(const struct trace_event *e);

#endif
