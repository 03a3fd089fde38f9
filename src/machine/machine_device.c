/* Measures copy bandwidth in a device's memory for sizes within and beyond its L2, with the
 * driver's copy or the STORE kernel, whichever is faster: the driver's copy in a CUDA graph may run
 * on a copy engine, which is slower than the SMs. */
#include "backend/kernel.h"
#include "machine/machine_parts.h"
#include "measure/stopwatch.h"

static const int64_t SMALLEST = 1 << 20, ENOUGH = INT64_C(4) << 30, QUICK = INT64_C(1) << 30;

struct copying {
    const struct device *device;
    struct target target;
    void *context, *from, *to;
    int64_t bytes;               /* that a copy copies */
    const struct kernel *kernel; /* NULL: the driver copies */
    struct kernel_call call;
};

static enum status start(void *user, int)
{
    struct copying *c = user;
    if (c->kernel) return c->kernel->run(&c->call);
    return c->device->backend->memory.copy(c->context, c->to, c->from, c->bytes);
}

/* Bytes per second, read plus written, of the fastest of several tries. */
static enum status rate(struct copying *c, bool quick, double *ret)
{
    struct stopwatch w = {
        .backend = c->device->backend, .context = c->context, .start = start, .user = c};
    int calls = 1 + (int)(((int64_t)(quick ? 4 : 16) << 30) / (2 * c->bytes));
    double ms, best = 0;
    enum status st = ST_OK;
    if (calls > 1000) calls = 1000;
    TRY_OUT(st, stopwatch_time(&w, 1, &ms));
    for (int i = 0; i < (quick ? 3 : 7); i++) {
        TRY_OUT(st, stopwatch_time(&w, calls, &ms));
        if (i == 0 || ms < best) best = ms;
    }
    *ret = best > 0 ? 2 * (double)c->bytes / (best * 1e-3) : 0;
out:
    stopwatch_release(&w);
    return st;
}

/* Prepares the copy to = from as a kernel, if the backend has one. */
static enum status prepare(struct copying *c)
{
    static const union attr attr;
    struct type t = type_1d(DT_F32, c->bytes / dtype_size(DT_F32));
    c->call = (struct kernel_call){.attr = &attr, .n_in = 2, .n_out = 1, .in_type = {t, t}};
    c->call.out_type[0] = t;
    c->call.in[0] = c->call.out[0] = c->to, c->call.in[1] = c->from;
    c->call.context = c->context, c->call.target = &c->target;
    c->kernel = c->device->backend->kernels.find(OP_STORE, &c->call, 0);
    return c->kernel && c->kernel->prepare ? c->kernel->prepare(c->kernel, &c->call) : ST_OK;
}

static enum status faster(struct copying *c, bool quick, double *ret)
{
    double by_kernel = 0;
    c->kernel = NULL;
    TRY(rate(c, quick, ret));
    TRY(prepare(c));
    enum status st = c->kernel ? rate(c, quick, &by_kernel) : ST_OK;
    if (c->kernel && c->kernel->release) c->kernel->release(&c->call);
    if (by_kernel > *ret) *ret = by_kernel;
    return st;
}

static enum status sizes(struct machine_work *w, struct copying *c, int64_t largest)
{
    struct machine *m = w->machine;
    int sizes = 0;
    for (int64_t bytes = SMALLEST; bytes <= largest && sizes < MACHINE_COPIES; bytes *= 2) sizes++;
    for (int i = 0; i < sizes; i++) {
        struct machine_copy *copy = &m->copy[m->copies];
        TRY(machine_work_done(w, 0, "copies"));
        c->bytes = (SMALLEST << i) / 2;
        copy->bytes = 2 * c->bytes;
        TRY(faster(c, w->quick, &copy->moved));
        copy->moved_one = copy->moved;
        if (copy->moved > 0) m->copies++;
        TRY(machine_work_done(w, 0.5 / sizes, "copies"));
    }
    machine_make_ceilings(m);
    return ST_OK;
}

/* Fills the memory with non-zero bytes, because copying zeros takes less power. */
static enum status fill(struct copying *c, int64_t bytes)
{
    const struct backend *b = c->device->backend;
    TRY(b->memory.fill(c->context, c->from, 0x5a, bytes));
    return b->memory.fill(c->context, c->to, 0xa5, bytes);
}

enum status machine_measure_device_copies(struct machine_work *w)
{
    struct copying c = {.device = &w->machine->device};
    const struct backend *b = c.device->backend;
    int64_t largest = w->quick ? QUICK : ENOUGH,
            free_bytes = b->devices.free_memory(c.device->number);
    enum status st = ST_OK;
    while (free_bytes >= 0 && largest > free_bytes / 2 && largest > SMALLEST) largest /= 2;
    TRY(backend_target(b, c.device->number, &c.target));
    TRY(b->open(c.device->number, &c.context));
    TRY_OUT(st, b->memory.alloc(c.context, largest / 2, &c.from));
    TRY_OUT(st, b->memory.alloc(c.context, largest / 2, &c.to));
    TRY_OUT(st, fill(&c, largest / 2));
    TRY_OUT(st, sizes(w, &c, largest));
out:
    if (c.from) b->memory.free(c.context, c.from);
    if (c.to) b->memory.free(c.context, c.to);
    b->close(c.context);
    return st;
}
