/* streams.hpp - queues work on the device in the order of its stream; for cuda.cpp and
 * cublaslt.cpp. */
#pragma once
#include <cuda.h>

#include <functional>

/* A piece of work, as a profiler reports it. */
enum emu_kind { EMU_EVENT, EMU_KERNEL, EMU_COPY, EMU_FILL };
struct emu_what {
    emu_kind kind;
    const char *name; /* of a kernel; valid as long as the program runs */
    size_t bytes;
    int direction;             /* of a copy: a CUpti_ActivityMemcpyKind */
    unsigned long long to = 0; /* of a fill */
    unsigned char byte = 0;
};

/* Work takes its computed milliseconds and may fail; after a failure the device does nothing
 * more. */
typedef std::function<CUresult()> emu_work;
CUresult emu_enqueue(CUstream stream, double ms, const emu_what &what, emu_work work);

/* A watcher receives each call, with its number, and each piece of work when it was done. Work of a
 * captured graph has the numbers of the graph and of its node (else 0), and whether a watcher
 * existed when the graph was instantiated. */
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
    void (*returned)(const char *name, long long from_ns, long long to_ns) = nullptr;
};
/* The host is in this call of the API while it lives; a watcher then receives it, by the host's
 * clock. */
struct emu_call {
    const char *name;
    long long from_ns;
    explicit emu_call(const char *api);
    ~emu_call();
};
long long emu_host_ns();
void emu_watch(const emu_watcher *w); /* NULL: none */
/* Whether CUPTI records activities (cupti.cpp). */
bool emu_tracing();
double emu_now_ms();
/* The sticky error; CUDA_SUCCESS: none. */
CUresult emu_fault();
/* Takes device memory that belongs to no allocation; false if there is not enough. */
bool emu_take(size_t bytes);
void emu_give(size_t bytes);
/* Does all queued work on all streams. */
CUresult emu_drain();
/* Whether a stream is under capture, on which the host must not wait. */
bool emu_recording();
