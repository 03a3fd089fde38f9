/* tracer.h - a trace of one GPU: while CUPTI records, tracks the mark of everything that is
 * launched, captured or replayed.
 *
 * With a NULL tracer every function except tracer_begin does nothing. Private to backend/cuda. */
#ifndef BACKEND_CUDA_RUNTIME_TRACER_H
#define BACKEND_CUDA_RUNTIME_TRACER_H

#include "backend/cuda/runtime/driver.h"
#include "backend/trace.h"

struct arena;
struct tracer;

/* Creates *t if it is NULL. `stream` is the stream of the kernels and must be idle. */
enum status tracer_begin(struct tracer **t, CUstream stream);
void tracer_mark(struct tracer *t, int mark);
void tracer_launched(struct tracer *t);
/* Whether kernels that are captured from now on run on another stream, beside those of the
 * stream. */
void tracer_beside(struct tracer *t, bool beside);
/* The device must be idle. Fails if nothing was recorded although kernels ran. */
enum status tracer_end(struct tracer *t, struct trace *ret, struct arena *a);
void tracer_close(struct tracer *t);

enum { RECORDING_UNKNOWN = -1 };
/* Called around a capture of the stream. tracer_capture_end returns the graph's number for
 * tracer_replay_begin. `node` lists the n captured nodes, or is NULL if the capture failed. If
 * without[i] is true, the caller removes node i from the graph. */
void tracer_capture_begin(struct tracer *t);
int tracer_capture_end(struct tracer *t, const CUgraphNode *node, const bool *without, size_t n);
/* Called around the launch of a graph. */
void tracer_replay_begin(struct tracer *t, int recording);
void tracer_replay_end(struct tracer *t);

#endif
