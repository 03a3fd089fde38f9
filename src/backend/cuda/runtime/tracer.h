/* tracer.h - a trace of one GPU: whose the things are that are started, recorded and played while CUPTI takes notes.
 *
 * A NULL tracer takes no notes: every function but tracer_begin then does nothing. Private to backend/cuda. */
#ifndef BACKEND_CUDA_RUNTIME_TRACER_H
#define BACKEND_CUDA_RUNTIME_TRACER_H

#include "backend/cuda/runtime/driver.h"
#include "backend/trace.h"

struct arena;
struct tracer;

/* Makes *t if it is NULL. The stream of the kernels; it is idle. */
enum status tracer_begin(struct tracer **t, CUstream stream);
void tracer_mark(struct tracer *t, int mark);
/* A kernel is started. */
void tracer_started(struct tracer *t);
/* The device is idle. That nothing was noted, though kernels ran, is a failure. */
enum status tracer_end(struct tracer *t, struct trace *ret, struct arena *a);
void tracer_close(struct tracer *t);

enum { RECORDING_UNKNOWN = -1 };
/* Around a recording of the stream; the second returns the number that its plays are told by. `node`: all n nodes that were
 * recorded, NULL if nothing was; those of `without` will not be played. */
void tracer_record(struct tracer *t);
int tracer_recorded(struct tracer *t, const CUgraphNode *node, const bool *without, size_t n);
/* Around the call that plays it. */
void tracer_play(struct tracer *t, int recording);
void tracer_played(struct tracer *t);

#endif
