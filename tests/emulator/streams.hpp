/* streams.hpp - what is to be done on the device, in the order of its stream; for cuda.cpp and cublaslt.cpp. */
#pragma once
#include <cuda.h>

#include <functional>

/* Work takes its reckoned milliseconds and may fail; then nothing more is done on this device. */
typedef std::function<CUresult()> emu_work;
CUresult emu_enqueue(CUstream stream, double ms, emu_work work);
/* What failed and cannot be undone; CUDA_SUCCESS: nothing. */
CUresult emu_fault();
/* Does all that waits on all streams. */
CUresult emu_drain();
/* Some stream is recorded, on which the host must not wait. */
bool emu_recording();
