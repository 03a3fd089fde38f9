/* recording.h - captures work as a CUDA graph and replays it. Private to backend/cuda. */
#ifndef BACKEND_CUDA_RUNTIME_RECORDING_H
#define BACKEND_CUDA_RUNTIME_RECORDING_H

#include "base/base.h"

enum status cuda_capture_begin(void *context);
enum status cuda_capture_end(void *context, void **ret_recording);
enum status cuda_replay(void *context, void *recording);
void cuda_recording_free(void *context, void *recording);

#endif
