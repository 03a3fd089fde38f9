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

/* Which kernels a backend has. `find`, `gains` and a row's `fits` and `scratch_bytes` are pure: what they
 * return follows from the call's types, attributes, numerics, target and tuning. */
struct backend_kernels {
    /* A row of the table for the call, best first, the n-th that fits; NULL: no more. */
    const struct kernel *(*find)(int op, const struct kernel_call *call, int n);
    /* Row i of all that were built in, whether or not this machine runs it; NULL after the last. */
    const struct kernel *(*row)(int i);
    /* Whether an operator that stands for smaller ones is faster than these, for operators of which the
     * pass `fuse` is not sure (pass.h). NULL: never. */
    bool (*gains)(int op, const struct kernel_call *call);
    /* Measures on an open device the variants that answer a question about this call (tuning.h); takes memory
     * meanwhile. A failure says why they could not be measured. NULL: timing decides nothing in this backend. */
    enum status (*tune)(void *ctx, int op, const struct kernel_call *call,
                        struct tuning_entry *ret);
    /* The instruction set that its matmul library uses, as the library calls it; NULL: none is used.
     * From then on the library is bound to the limit that was set (base/isa.h). NULL: it has no library. */
    const char *(*library_isa)(void);
};

/* Which devices there are, asked before one is opened. */
struct backend_devices {
    /* How many can be opened; they are numbered from 0. */
    int (*count)(void);
    /* A failure says why there is no such device. */
    enum status (*describe)(int device, struct device_facts *ret);
    /* Bytes of a device's memory that are free; -1: unknown. */
    int64_t (*free_memory)(int device);
    /* Library i of those that it opens, the needed ones first; false after the last. NULL: it opens none. */
    bool (*library)(int i, struct device_library *ret);
    /* What programs are compiled for on that device; for backend_target. NULL: nothing is known of a device. */
    enum status (*target)(int device, struct target *ret);
    /* Why this target does not compute in that type (tf32: in f32 rounded to TF32), NULL if it does.
     * NULL: every device computes in every type. */
    const char *(*refuses)(const struct target *t, enum dtype dtype, bool tf32);
};

/* Memory of a device. Copies take their turn in the stream. */
struct backend_memory {
    /* 64-byte aligned and zeroed. */
    enum status (*alloc)(void *ctx, int64_t size, void **ret_mem);
    void (*free)(void *ctx, void *mem);
    enum status (*upload)(void *ctx, void *dst, const void *src, int64_t size);
    enum status (*download)(void *ctx, void *dst, const void *src, int64_t size);
    /* As download, but the host does not wait: dst is filled when sync returns, or event_wait for a later
     * event. For few bytes. */
    enum status (*download_later)(void *ctx, void *dst, const void *src, int64_t size);
    /* An upload beside what runs: stage copies to `staging`, device memory, as soon as unstage has read
     * what was staged there before; src may change when it returns. unstage copies, in the stream, what was
     * staged last to dst. Neither becomes part of a recording. */
    enum status (*stage)(void *ctx, void *staging, const void *src, int64_t size);
    enum status (*unstage)(void *ctx, void *dst, const void *staging, int64_t size);
    /* From device memory to device memory; the two do not overlap. */
    enum status (*copy)(void *ctx, void *dst, const void *src, int64_t size);
    enum status (*fill)(void *ctx, void *dst, uint8_t byte, int64_t size);
};

/* The order in which a device works, and its clock. */
struct backend_stream {
    /* The host waits until all work is done. */
    enum status (*sync)(void *ctx);
    /* The event happens when all work that was given before is done. */
    enum status (*event_record)(void *ctx, int event);
    /* The host waits for the event. */
    enum status (*event_wait)(void *ctx, int event);
    enum status (*event_elapsed)(void *ctx, int from, int to, double *ret_ms);
};

/* Kernels that are compiled for a call and launched: a row may be several. */
struct backend_launches {
    /* Appends the texts that are generated for this call alone; false: none are. */
    bool (*generated)(const struct kernel *k, const struct kernel_call *call, struct str *s);
    /* Launches so far, those that were captured included. */
    int64_t (*count)(void *ctx);
};

/* A recording: work between begin and end is captured instead of run, and replayed as one afterwards, at
 * the same addresses. */
struct backend_recording {
    enum status (*begin)(void *ctx);
    enum status (*end)(void *ctx, void **ret_recording);
    enum status (*replay)(void *ctx, void *recording);
    void (*free)(void *ctx, void *recording);
};

/* A trace (trace.h) notes what the device does between begin and end. A failure of either says why there is
 * none; then nothing is noted, and all else goes on. */
struct backend_trace {
    /* The library that traces need; only a trace, and this question, opens it. */
    void (*library)(struct device_library *ret);
    enum status (*begin)(void *ctx);
    /* What this thread launches or captures from here on has that mark, 0 or more; -1, as when a trace
     * begins: none. Costs next to nothing, and without a trace nothing. */
    void (*mark)(void *ctx, int mark);
    /* Waits for the device. */
    enum status (*end)(void *ctx, struct trace *ret, struct arena *a);
    /* Begins and ends the range that a profiler attached to the process shall look at. */
    void (*profiler_range)(void *ctx, bool begin);
};

/* Readings of a device's gauges. */
struct backend_telemetry {
    /* What the device says of itself now (sample.h). From any thread, one at a time; it does not wait for
     * the device or its work, but may take milliseconds. A failure says why there is no reading. */
    enum status (*sample)(void *ctx, struct device_sample *ret);
};

struct backend {
    const char *name;
    bool host_memory; /* what alloc gives, the host may read and write */
    enum status (*open)(int device, void **ret_ctx);
    void (*close)(void *ctx);
    struct backend_kernels kernels;
    struct backend_devices devices;
    struct backend_memory memory;
    struct backend_stream stream;
    /* NULL: it has nothing of the kind. A group that is there has all its functions. */
    const struct backend_launches *launches;
    const struct backend_recording *recording;
    const struct backend_trace *trace;
    const struct backend_telemetry *telemetry;
};

enum {
    BACKEND_EVENTS = 4096,
    EVENT_STEPS = BACKEND_EVENTS - 2 /* two for the ends of runs (engine/sequence.h) */
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
