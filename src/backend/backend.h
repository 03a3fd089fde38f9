/* backend.h - the interface of a backend (one kind of device), and THE list of backends. */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include "backend/counters.h"
#include "graph/op.h"
#include "tuning/target.h"

struct kernel;
struct kernel_call;
struct device_sample;
struct str;
struct trace;
struct tuning_entry;
struct arena;

struct device_facts {
    char name[64];       /* "NVIDIA H200"; empty: unknown */
    char capability[16]; /* of a GPU: "9.0" */
    int processors;      /* SMs of a GPU, logical processors of a CPU */
    int64_t bytes;       /* total memory; 0: unknown */
    int64_t cache_bytes; /* last-level cache (L2 of a GPU, L3 of a CPU); 0: unknown */
    double clock_mhz;    /* nominal SM clock of a GPU; 0: unknown */
    double memory_rate;  /* bytes/s of a GPU's memory by its clock and width; 0: unknown */
    int memory_bits;     /* width of a GPU's memory; 0: unknown */
    /* What an SM of a GPU holds at once; 0: unknown. */
    int sm_threads, sm_blocks, sm_registers;
    int64_t sm_shared_bytes; /* the most shared memory; the same memory also holds the L1 cache */
};

/* A library that a backend opens at run time. */
struct device_library {
    const char *name;
    const char *consequence;         /* the consequence if it is missing */
    bool needed;                     /* without it no device can be used */
    const char *unavailable_because; /* NULL: it is available; else why it is not */
    char version[48];                /* empty: unknown */
};

/* The kernels of a backend. */
struct backend_kernels {
    /* Returns the n-th row of the table that fits the call, best first; NULL if no more rows fit.
     */
    const struct kernel *(*find)(int op, const struct kernel_call *call, int n);
    /* Returns row i of all built-in rows, whether or not this machine can run the row; NULL after
     * the last row. */
    const struct kernel *(*row)(int i);
    /* Returns true if a fused operator is faster than the operators that it replaces. The pass
     * `fuse` (pass.h) calls this for operators that are not always faster. If the pointer is NULL,
     * none of them is faster. */
    bool (*fusion_pays)(int op, const struct kernel_call *call);
    /* Measures the variants for this call (tuning.h) on an open device, with temporary memory. A
     * failure states why they could not be measured. NULL: this backend tunes nothing. */
    enum status (*tune)(void *ctx, int op, const struct kernel_call *call,
                        struct tuning_entry *ret);
    /* The name of the instruction set that the matmul library uses; NULL: none. The call fixes the
     * limit of base/isa.h for the library. If the pointer is NULL, there is no library. */
    const char *(*library_isa)(void);
};

/* Queries about devices; none of them needs an open device. */
struct backend_devices {
    /* The number of devices that can be opened; they are numbered from 0. */
    int (*count)(void);
    /* A failure states why there is no such device. */
    enum status (*describe)(int device, struct device_facts *ret);
    /* Bytes of free memory on a device; -1: unknown. */
    int64_t (*free_memory)(int device);
    /* For backend_library_at. NULL: the backend opens no library. */
    bool (*library)(int i, struct device_library *ret);
    /* The target of a device, for backend_target. NULL: a target holds no device properties. */
    enum status (*target)(int device, struct target *ret);
    /* Why this target does not support that type (tf32: f32 rounded to TF32), NULL if it does.
     * If the pointer is NULL, every device supports every type. */
    const char *(*refuses)(const struct target *t, enum dtype dtype, bool tf32);
};

/* Memory of a device. Copies are in stream order. */
struct backend_memory {
    /* The memory is 64-byte aligned and zeroed. */
    enum status (*alloc)(void *ctx, int64_t size, void **ret_mem);
    void (*free)(void *ctx, void *mem);
    enum status (*upload)(void *ctx, void *dst, const void *src, int64_t size);
    enum status (*download)(void *ctx, void *dst, const void *src, int64_t size);
    /* Like download, but the host does not wait. dst is filled once sync returns, or once
     * event_wait returns for an event that was recorded after this call. For a few bytes. */
    enum status (*download_later)(void *ctx, void *dst, const void *src, int64_t size);
    /* An upload that overlaps with running kernels. stage copies src to `staging` (device memory)
     * as soon as unstage has read the data staged before; src may change once stage returns.
     * unstage copies the data staged last to dst, in stream order. Neither may be captured. */
    enum status (*stage)(void *ctx, void *staging, const void *src, int64_t size);
    enum status (*unstage)(void *ctx, void *dst, const void *staging, int64_t size);
    /* From device memory to device memory; the two ranges must not overlap. */
    enum status (*copy)(void *ctx, void *dst, const void *src, int64_t size);
    enum status (*fill)(void *ctx, void *dst, uint8_t byte, int64_t size);
};

/* Page-locked host memory. The device copies it without the CPU, which is the fastest way over the
 * host link. Copies are in stream order; the host does not wait. */
struct backend_pinned {
    enum status (*alloc)(void *ctx, int64_t size, void **ret_host);
    void (*free)(void *ctx, void *host);
    enum status (*to_device)(void *ctx, void *dst, const void *host, int64_t size);
    enum status (*to_host)(void *ctx, void *host, const void *src, int64_t size);
};

/* The stream of a device, and its events. */
struct backend_stream {
    /* The host waits until all work is done. */
    enum status (*sync)(void *ctx);
    /* The event completes when all work enqueued before it is done. */
    enum status (*event_record)(void *ctx, int event);
    /* The host waits for the event. */
    enum status (*event_wait)(void *ctx, int event);
    enum status (*event_elapsed)(void *ctx, int from, int to, double *ret_ms);
};

/* Streams 1 ... BACKEND_STREAMS - 1 of a device, in addition to stream 0 (struct backend_stream).
 * Work on different streams may overlap. The selected stream receives launches of kernel texts,
 * copies of page-locked memory and event records; everything else needs stream 0. */
enum { BACKEND_STREAMS = 4 };
struct backend_streams {
    enum status (*select)(void *ctx, int stream);
    /* Later work of the selected stream waits for an event; the host does not. The function sync
     * waits for stream 0, and for another stream only if stream 0 waits for an event of it. */
    enum status (*wait)(void *ctx, int event);
};

/* Host time, since the device was opened, that was spent on making kernels ready to run. */
struct kernel_setup {
    double compile_ms; /* by the compiler, or read from the cache of compiled kernels */
    double load_ms;    /* into the driver */
    double choose_ms;  /* asking the matmul library for candidates, and timing them */
};

/* How a kernel is launched: blocks, threads of a block, dynamic shared memory of a block. */
struct kernel_shape {
    unsigned grid[3], block[3];
    int64_t shared_bytes;
};

/* A launch of a planned call. All members are zero if a library launches its own kernels. */
struct planned_launch {
    const char *text, *source, *options; /* source is NULL for the built-in file `text` */
    const char *entry;                   /* the kernel function; NULL: a library's kernel */
    struct kernel_shape shape;
    /* Set by `compile`; -1: unknown. */
    int registers;        /* of a thread */
    int64_t static_bytes; /* static shared memory of a block; shape.shared_bytes is dynamic */
};
enum { CALL_LAUNCHES = 8 }; /* maximum number of launches of a call */

/* Kernels that are compiled for a call and launched; a row may launch several. */
struct backend_launches {
    /* Appends the kernel sources generated for this call; false if there are none. */
    bool (*generated)(const struct kernel *k, const struct kernel_call *call, struct str *s);
    /* Fills in the kernel launches of a planned call, in order, without a device; returns their
     * number. Strings live in `a`. */
    int (*planned)(const struct kernel *k, const struct kernel_call *call,
                   struct planned_launch ret[CALL_LAUNCHES], struct arena *a);
    /* Compiles these kernels for the target, or reads them from the cache of compiled kernels. No
     * launch may be a library's. Needs no device. Shows progress if it takes long. */
    enum status (*compile)(const struct target *t, struct planned_launch *const *launch, int n);
    /* Launches so far, including captured ones. */
    int64_t (*count)(void *ctx);
    void (*setup)(void *ctx, struct kernel_setup *ret);
};

/* A kernel source that the caller supplies, such as a rung of a ladder (lab/lab.h). */
struct kernel_text {
    const char *name;    /* for messages: "copy/gpu/02_coalesced.cu" */
    const char *source;  /* may include the headers of the backend's kernels */
    const char *options; /* constants: "-DSTRIDE=32"; "": none */
    const char *entry;   /* an extern "C" __global__ function of the source */
};
/* A matrix of device memory, for copies by tensor maps (TMA, from compute capability 9.0 on):
 * `rows` rows of `columns` elements, `pitch` bytes from row to row; a copy moves a box. A row of
 * the box has 32, 64 or 128 bytes, which is also its swizzle in shared memory. */
struct kernel_map {
    enum dtype dtype;
    bool tf32; /* copies round floats to TF32 */
    int64_t rows, columns, pitch;
    int box_rows, box_columns;
};
enum { KERNEL_MAP_BYTES = 128, KERNEL_MAP_ALIGN = 64 };
/* The resources that a kernel uses. If the device does not report them, all numbers are -1. */
struct kernel_resources {
    int registers;        /* of a thread */
    int64_t shared_bytes; /* of a block, static and dynamic */
    int64_t local_bytes;  /* of a thread: spilled registers, arrays with computed indices */
    int blocks;           /* of this shape that an SM holds at once */
    int warps, max_warps; /* warps of these blocks; maximum number of warps of an SM */
    const char *limit;    /* what limits `blocks`: "registers", "threads" ...; NULL: unknown */
};

/* Compiles kernel sources of the caller and launches them on the stream of the device. */
struct backend_texts {
    /* Copies the strings and compiles nothing. The first launch or query of resources compiles all
     * sources that were added before, in parallel. A launch or query reports only errors of its
     * own source. */
    enum status (*add)(void *ctx, const struct kernel_text *t, void **ret_kernel);
    void (*free)(void *ctx, void *kernel);
    /* argument[i] points to the i-th argument of the kernel. */
    enum status (*launch)(void *ctx, void *kernel, const struct kernel_shape *s, void **argument);
    /* Writes the kernel argument, of KERNEL_MAP_BYTES, that describes the matrix at address
     * `matrix`. This address and the pitch must be multiples of 16. */
    enum status (*map)(void *ctx, const struct kernel_map *m, void *matrix, void *ret_argument);
    enum status (*resources)(void *ctx, void *kernel, const struct kernel_shape *s,
                             struct kernel_resources *ret);
    /* Appends the PTX that the compiler makes from a source for this device. If the compiler fails,
     * appends the compiler's whole message. */
    enum status (*assembly)(void *ctx, const struct kernel_text *t, struct str *ret);
};

/* A captured graph: the work that is enqueued between begin and end, on fixed addresses. replay
 * launches all of this work with one call. */
struct backend_recording {
    enum status (*begin)(void *ctx);
    enum status (*end)(void *ctx, void **ret_recording);
    enum status (*replay)(void *ctx, void *recording);
    void (*free)(void *ctx, void *recording);
};

/* A trace (trace.h) records the device's activities between begin and end. A failure of either
 * states why there is no trace; everything else continues to work. */
struct backend_trace {
    /* Describes the library that traces need. Only a trace and this query open the library. */
    void (*library)(struct device_library *ret);
    enum status (*begin)(void *ctx);
    /* Sets the mark, 0 or more, of everything that this thread launches or captures from now on; -1
     * removes the mark. At the start of a trace there is no mark. The cost is negligible, and zero
     * without a trace. */
    void (*mark)(void *ctx, int mark);
    /* Waits for the device. */
    enum status (*end)(void *ctx, struct trace *ret, struct arena *a);
    /* Record only calls of the driver's API, no activities. They need no open device, so the
     * recorded calls may include those that open a device. No trace may begin in between. */
    enum status (*calls_begin)(void);
    enum status (*calls_end)(struct trace *ret, struct arena *a);
    /* Begins or ends the range that a profiler attached to this process records. */
    void (*profiler_range)(void *ctx, bool begin);
};

/* Hardware counters (counters.h) of every kernel between begin and end. Kernels run one by one, so
 * they take longer than in a normal step; their results are the same. Must not be used during a
 * trace. If begin or end fails, the message says why there are no counters and what to do;
 * everything else continues to work. */
struct backend_counters {
    enum status (*begin)(void *ctx, enum counter_set set, int64_t most); /* most kernels to count */
    /* Waits for the device. Fills the first *ret_kernels elements of ret[most], in the order of the
     * launches. Kernels beyond `most` are left out. */
    enum status (*end)(void *ctx, struct kernel_counters *ret, int64_t *ret_kernels);
};

/* Telemetry of a device: clock, power, utilization and so on. */
struct backend_telemetry {
    /* Takes a sample (sample.h). May be called from any thread, one at a time. It does not wait for
     * the device, but may take milliseconds. A failure states why there is no sample. */
    enum status (*sample)(void *ctx, struct device_sample *ret);
    /* Why samples contain no hardware counters; NULL: they do. Call it after the first sample. If
     * the pointer is NULL, the samples of this backend never contain any. */
    const char *(*no_counters)(void *ctx);
};

struct backend {
    const char *name;
    bool host_memory; /* the host may read and write memory from alloc */
    enum status (*open)(int device, void **ret_ctx);
    void (*close)(void *ctx);
    struct backend_kernels kernels;
    struct backend_devices devices;
    struct backend_memory memory;
    struct backend_stream stream;
    /* NULL: the backend does not support the group. Otherwise all functions of the group are set,
     * unless the comment of a function says that it may be NULL. */
    const struct backend_launches *launches;
    const struct backend_texts *texts;
    const struct backend_pinned *pinned;
    const struct backend_streams *streams;
    const struct backend_recording *recording;
    const struct backend_trace *trace;
    const struct backend_counters *counters;
    const struct backend_telemetry *telemetry;
};

enum {
    BACKEND_EVENTS = 4096,
    EVENT_STEPS = BACKEND_EVENTS - 2 /* two are reserved for the ends of runs (engine/sequence.h) */
};
/* One device of a backend. */
struct device {
    const struct backend *backend;
    int number;
};
/* The backend with this name ("cpu", "null"); NULL if there is none. */
const struct backend *backend_find(const char *name);
/* Returns the target of a device, which need not be open. For TARGET_ANY, returns the target of the
 * first device, or the default target if there is no device. A failure states why the requested
 * device does not exist. */
enum status backend_target(const struct backend *b, int device, struct target *ret);
/* Returns library i of the libraries that a backend opens, needed libraries first; false after the
 * last library. */
bool backend_library_at(const struct backend *b, int i, struct device_library *ret);
/* Returns the library with this name; false if the backend opens no such library. */
bool backend_library(const struct backend *b, const char *name, struct device_library *ret);
/* Backend i of the list; NULL after the last. */
const struct backend *backend_at(int i);

#endif
