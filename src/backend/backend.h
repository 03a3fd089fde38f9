/* backend.h - where a plan runs: memory, kernels and time of one kind of device; THE list of backends. */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include "graph/op.h"
#include "tuning/target.h"

struct kernel;
struct kernel_call;
struct device_sample;
struct str;
struct trace;
struct tuning_entry;
struct arena;

/* What a device is. */
struct device_facts {
    char name[64];       /* "NVIDIA H200"; empty: unknown */
    char capability[16]; /* of a GPU: "9.0" */
    int processors;      /* multiprocessors of a GPU, logical processors of a CPU */
    int64_t bytes;       /* of memory in all; 0: unknown */
    int64_t cache_bytes; /* of the cache before memory that all processors share; 0: unknown */
    double clock_mhz;    /* nominal, of a GPU's multiprocessors; 0: unknown */
};

/* A library that a backend opens when the program runs. */
struct device_library {
    const char *name;
    const char *without; /* what its lack costs */
    bool needed;         /* its lack costs all: no device can be used */
    const char *why;     /* NULL: it is there; else why it is not */
    char version[48];    /* empty: unknown */
};

struct backend {
    const char *name;
    /* For backend_target. NULL: nothing is to be known of a device. */
    enum status (*target)(int device, struct target *ret);
    /* A row of this backend's kernels for the call, best first, the n-th that fits; NULL: no more. Pure, as are `gains` and the
     * rows' `fits` and `scratch_bytes`: what they say follows from the call's types, attributes, target and tuning. */
    const struct kernel *(*kernel)(int op, const struct kernel_call *call, int n);
    /* Whether an operator that stands for smaller ones is faster here than these, for operators of which the pass
     * `fuse` is not sure (pass.h). NULL: never. Pure. */
    bool (*gains)(int op, const struct kernel_call *call);
    /* Row i of all that were built in, whether or not this machine runs it; NULL after the last. */
    const struct kernel *(*row)(int i);
    /* Appends the texts of kernels that are written for this call alone; false: it has none. NULL: none is ever written. */
    bool (*written)(const struct kernel *k, const struct kernel_call *call, struct str *s);
    /* The instruction set that its library of products uses, as the library calls it; NULL: none is used.
     * From then on the library is bound to the limit that was set (base/isa.h). NULL: it has no library. */
    const char *(*library_isa)(void);
    /* Devices that are there to be opened, numbered from 0. */
    int (*devices)(void);
    bool host_memory; /* what alloc gives, the host may read and write */
    /* A failure says why there is no such device. */
    enum status (*describe)(int device, struct device_facts *ret);
    /* Bytes of a device's memory that are free; -1: unknown. */
    int64_t (*room)(int device);
    /* Library i of those that it opens, the needed ones first; false after the last. NULL: it opens none. */
    bool (*library)(int i, struct device_library *ret);
    /* What the device says of itself now (sample.h). From any thread, one at a time; neither the device nor what was given to
     * it is waited for, but it may take milliseconds. A failure says why it tells nothing. NULL: it never does. */
    enum status (*sample)(void *ctx, struct device_sample *ret);
    /* The library that traces need; nothing but a trace, and this question, opens it. NULL: they need none. */
    void (*trace_library)(struct device_library *ret);
    enum status (*open)(int device, void **ret_ctx);
    void (*close)(void *ctx);
    /* Why this target does not compute in that type (tf32: in f32 rounded to TF32), NULL if it does. NULL: every type. */
    const char *(*refuses)(const struct target *t, enum dtype dtype, bool tf32);
    /* Measures the variants that answer a question about this call (tuning.h); takes memory meanwhile. A failure says
     * why they could not be measured. NULL: no decision of this backend is of timing. */
    enum status (*tune)(void *ctx, int op, const struct kernel_call *call,
                        struct tuning_entry *ret);
    /* Memory is 64-byte aligned and zeroed. */
    enum status (*alloc)(void *ctx, int64_t size, void **ret_mem);
    void (*free)(void *ctx, void *mem);
    enum status (*upload)(void *ctx, void *dst, const void *src, int64_t size);
    enum status (*download)(void *ctx, void *dst, const void *src, int64_t size);
    /* As download, but the host goes on: dst is filled when sync returns, or reached for a later moment. For few bytes. */
    enum status (*download_later)(void *ctx, void *dst, const void *src, int64_t size);
    /* An upload beside what runs: stage begins to copy to `room`, device memory, as soon as what was staged there before has
     * been taken; src may change when it returns. unstage takes its turn after the work that was given: what was staged
     * last goes from there to dst. Neither is recorded. */
    enum status (*stage)(void *ctx, void *room, const void *src, int64_t size);
    enum status (*unstage)(void *ctx, void *dst, const void *room, int64_t size);
    /* From device memory to device memory; the two do not overlap. */
    enum status (*copy)(void *ctx, void *dst, const void *src, int64_t size);
    enum status (*fill)(void *ctx, void *dst, uint8_t byte, int64_t size);
    enum status (*sync)(void *ctx);
    /* Kernels that were started or recorded so far: a row may be several. NULL: it does not count them. */
    int64_t (*started)(void *ctx);
    /* Notes the moment at which everything before it is done; elapsed reads the time between two. */
    enum status (*mark)(void *ctx, int event);
    /* The host waits for that moment. */
    enum status (*reached)(void *ctx, int event);
    enum status (*elapsed)(void *ctx, int from, int to, double *ret_ms);
    /* What runs between these two is recorded instead, and played as one afterwards, at the same addresses; all NULL:
     * this backend has no replay. */
    enum status (*capture_begin)(void *ctx);
    enum status (*capture_end)(void *ctx, void **ret_recording);
    enum status (*replay)(void *ctx, void *recording);
    void (*recording_free)(void *ctx, void *recording);
    /* What the device does from here on is noted until trace_end hands it out (trace.h). A failure of either says in a sentence
     * why it cannot be; then nothing is noted, and all else goes on. All NULL: this backend does not see its device. */
    enum status (*trace_begin)(void *ctx);
    /* What this thread starts or records from here on is of that mark, 0 or more; -1, as when a trace begins: nobody's. Costs
     * next to nothing, and without a trace nothing. */
    void (*trace_mark)(void *ctx, int mark);
    /* Waits for the device. */
    enum status (*trace_end)(void *ctx, struct trace *ret, struct arena *a);
    /* Begins and ends what a profiler that is attached to the process shall look at. NULL: no such profiler knows it. */
    void (*attend)(void *ctx, bool begin);
};

enum {
    BACKEND_EVENTS = 4096,
    EVENT_STEPS = BACKEND_EVENTS - 2 /* two for the ends of steps (train/stepper.h) */
};
/* One device of a backend. */
struct device {
    const struct backend *backend;
    int number;
};
/* The backend of that name ("cpu", "null"); NULL if there is none. */
const struct backend *backend_find(const char *name);
/* What programs are compiled for on that device, which need not be opened; TARGET_ANY: the first, or, where there is none,
 * a device that stands for it. A failure says why there is no such device. */
enum status backend_target(const struct backend *b, int device, struct target *ret);
/* The library of that name that a backend opens; false: it opens none such. */
bool backend_library(const struct backend *b, const char *name, struct device_library *ret);
/* Number i of the list, NULL after the last. */
const struct backend *backend_at(int i);

#endif
