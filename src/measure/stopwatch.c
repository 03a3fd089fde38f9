#include "measure/stopwatch.h"

enum { FROM, TO };

static enum status start(struct stopwatch *w, int calls)
{
    for (int i = 0; i < calls; i++) TRY(w->start(w->user, i));
    return ST_OK;
}

static enum status record(struct stopwatch *w, int calls)
{
    stopwatch_release(w);
    TRY(w->backend->recording->begin(w->context));
    enum status st = start(w, calls);
    enum status ended = w->backend->recording->end(w->context, &w->recording);
    w->recorded = calls;
    return st != ST_OK ? st : ended;
}

enum status stopwatch_time(struct stopwatch *w, int calls, double *ret_ms)
{
    bool records = w->backend->recording && w->warm;
    if (records && w->recorded != calls) TRY(record(w, calls));
    TRY(w->backend->stream.event_record(w->context, FROM));
    TRY(records ? w->backend->recording->replay(w->context, w->recording) : start(w, calls));
    TRY(w->backend->stream.event_record(w->context, TO));
    TRY(w->backend->stream.sync(w->context));
    TRY(w->backend->stream.event_elapsed(w->context, FROM, TO, ret_ms));
    *ret_ms /= calls;
    w->warm = true;
    return ST_OK;
}

void stopwatch_release(struct stopwatch *w)
{
    if (w->recording) w->backend->recording->free(w->context, w->recording);
    w->recording = NULL;
    w->recorded = 0;
}
