#include "lab/memory_check.h"

#include "base/free_memory.h"
#include "base/threads.h"

/* Bytes of host memory while the inputs are made. For each input element: a float, the number in
 * its type, its double, and a copy of the double for the solution. For each output element: three
 * doubles, the solution among them. The checks need less later. */
static double host_bytes(const struct lab_problem *p)
{
    double inputs = 0;
    for (int i = 0; i < LAB_INPUTS; i++) inputs += (double)p->in[i];
    double of_input =
        (double)sizeof(float) + (double)dtype_size(p->dtype) + 2 * (double)sizeof(double);
    return inputs * of_input + (double)p->out * 3 * (double)sizeof(double);
}

/* The largest scratch of the rungs, and the memory for tuning the operator's variants. */
static double scratch_bytes(const struct lab_bench *b, const struct lab_problem *p)
{
    enum { TUNED = 2 };
    int64_t scratch = 0;
    bool tunes = false;
    for (int i = 0; i < b->rungs; i++) {
        scratch = max_i64(scratch, lab_scratch(&b->rung[i], p, (int)threads_count()));
        tunes |= b->rung[i].variant && b->device.backend->kernels.tune;
    }
    return (double)scratch + (tunes ? TUNED * (double)lab_set_bytes(p) : 0);
}

enum status memory_check(const char *what, const char *where, double needed, int64_t free)
{
    double usable = 0.9 * (double)free;
    if (free < 0 || needed <= usable) return ST_OK;
    return fail(
        ST_UNSUPPORTED,
        "%s: %.4g GiB of %s are needed, but only %.4g GiB (90 %% of the free memory) may be "
        "used; choose a smaller --size",
        what, needed / (1 << 30), where, usable / (1 << 30));
}

enum status memory_check_problem(const struct lab_bench *b, const struct lab_problem *p, int sets,
                                 int64_t extra, struct arena *a)
{
    const struct device *d = &b->device;
    const char *what =
        arena_printf(a, "%s at %s", b->ladder->name, lab_size_text(b->ladder, p->n, a));
    double device = (double)sets * ((double)lab_set_bytes(p) + (double)extra) + scratch_bytes(b, p);
    if (!d->backend->host_memory) {
        TRY(memory_check(what, "the GPU's memory", device,
                         d->backend->devices.free_memory(d->number)));
        device = 0;
    }
    return memory_check(what, "memory", host_bytes(p) + device, free_memory_bytes());
}
