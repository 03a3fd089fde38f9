/* streams.hpp - what is to be done on the device, in the order of its stream; for cuda.cpp and cublaslt.cpp. */
#pragma once
#include <cuda.h>

#include <functional>

/* What a piece of work is, as a profiler tells it. */
enum emu_kind { EMU_EVENT, EMU_KERNEL, EMU_COPY, EMU_FILL };
struct emu_what {
    emu_kind kind;
    const char *name; /* of a kernel; lives as long as the program */
    size_t bytes;
    int direction;             /* of a copy: a CUpti_ActivityMemcpyKind */
    unsigned long long to = 0; /* of a fill */
    unsigned char byte = 0;
};

/* Work takes its reckoned milliseconds and may fail; then nothing more is done on this device. */
typedef std::function<CUresult()> emu_work;
CUresult emu_enqueue(CUstream stream, double ms, const emu_what &what, emu_work work);

/* Who watches is told of each call, with its number, and of each piece of work when it was done; of one that was recorded with
 * the number of its recording and its own (else 0), and whether somebody watched when the recording was made ready. */
struct emu_done {
    emu_what what;
    unsigned call, recording;
    unsigned long long node;
    bool seen;
    double from_ms, to_ms;
};
struct emu_watcher {
    void (*called)(unsigned call);
    void (*done)(const emu_done &d);
};
void emu_watch(const emu_watcher *w); /* NULL: nobody */
double emu_now_ms();
/* What failed and cannot be undone; CUDA_SUCCESS: nothing. */
CUresult emu_fault();
/* Memory of the device that is no block's: false where there is not so much. */
bool emu_take(size_t bytes);
void emu_give(size_t bytes);
/* Does all that waits on all streams. */
CUresult emu_drain();
/* Some stream is recorded, on which the host must not wait. */
bool emu_recording();
