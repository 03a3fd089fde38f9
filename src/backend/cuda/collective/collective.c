/* Collectives on GPUs. Ranks that are processes have a GPU each and use NCCL (start_nccl). The rest
 * of this file is for ranks that are threads: they share one GPU and its primary context, so a
 * kernel of one rank reads and writes the memory of the others.
 *
 * Such ranks meet in the communicator (ranks/threads.c). The communicator's thread of each rank
 * launches the work on the rank's stream for collectives (cuda_ranks_stream), not on the stream of
 * the kernels. Each call has an event that orders the work on the device. The event is recorded
 * after the kernels that compute the data, then after the rank's part of the collective, and
 * finally after the parts of all ranks. */
#include "backend/communicator.h"
#include "backend/cuda/cuda_kernels.h"
#include "backend/cuda/runtime/context.h"
#include "backend/cuda/runtime/nccl.h"
#include "backend/cuda/runtime/tracer.h"
#include "base/heap.h"

#include <stdlib.h>

enum { THREADS = 256, EACH = 4, MOST = RANKS_ON_DEVICE }; /* as in collective.cu */

/* One rank's call of a collective. Other ranks read its `mark`. */
struct rank_call {
    void *context;
    CUstream stream;
    CUevent mark;
    CUfunction sum; /* NULL: the collective only copies */
};

/* --- the functions of struct collective_memory, which the communicator calls ------------------ */

static enum status follow(void *call, void *other)
{
    const struct rank_call *r = call, *o = other;
    TRY(cuda_enter(r->context));
    return cuda_check(
        cuda_driver(NULL)->cuStreamWaitEvent(r->stream, o->mark, CU_EVENT_WAIT_DEFAULT),
        "wait for another rank");
}

static enum status sum(void *call, float *const *all, int ranks, int64_t first, int64_t end,
                       int to_first, int to_end)
{
    const struct rank_call *r = call;
    CUdeviceptr at[MOST] = {0};
    void *parameter[MOST + 4] = {NULL};
    int64_t blocks = ceil_div(end - first, THREADS * EACH);
    if (end <= first) return ST_OK;
    for (int i = 0; i < MOST; i++) {
        if (i < ranks) at[i] = (CUdeviceptr)all[i];
        parameter[i] = &at[i];
    }
    parameter[MOST] = &first, parameter[MOST + 1] = &end;
    parameter[MOST + 2] = &to_first, parameter[MOST + 3] = &to_end;
    return cuda_check(cuda_driver(NULL)->cuLaunchKernel(r->sum, (unsigned)blocks, 1, 1, THREADS, 1,
                                                        1, 0, r->stream, parameter, NULL),
                      "launch the sum over ranks");
}

static enum status copy(void *call, float *to, const float *from, int64_t n)
{
    const struct rank_call *r = call;
    return cuda_check(cuda_driver(NULL)->cuMemcpyDtoDAsync((CUdeviceptr)to, (CUdeviceptr)from,
                                                           (size_t)n * sizeof *to, r->stream),
                      "copy to another rank");
}

static enum status mark(void *call)
{
    const struct rank_call *r = call;
    return cuda_check(cuda_driver(NULL)->cuEventRecord(r->mark, r->stream), "record an event");
}

static enum status join(void *call)
{
    const struct rank_call *r = call;
    return cuda_check(cuda_driver(NULL)->cuStreamWaitEvent(cuda_stream(r->context), r->mark,
                                                           CU_EVENT_WAIT_DEFAULT),
                      "wait for the other ranks");
}

static const struct collective_memory memory = {follow, sum, copy, mark, join};

/* --- rows ------------------------------------------------------------------------------------- */

static void release(struct kernel_call *c)
{
    void **state = cuda_row_state(c);
    struct rank_call *r = state ? *state : NULL;
    if (r && r->mark) cuda_driver(NULL)->cuEventDestroy(r->mark);
    free(r);
    cuda_release(c);
}

/* Returns the state of the call, which the first run creates. */
static enum status rank_call_of(const struct kernel_call *c, int launches, struct rank_call **ret)
{
    void **state = cuda_row_state(c);
    const struct cuda_launch *launch;
    struct rank_call *r = *state;
    *ret = r;
    if (r) return ST_OK;
    *ret = *state = r = HEAP_NEW(struct rank_call, 1);
    r->context = c->context;
    if (launches) TRY(cuda_function(c, 0, &launch, &r->sum));
    TRY(cuda_ranks_stream(c->context, &r->stream));
    return cuda_check(cuda_driver(NULL)->cuEventCreate(&r->mark, CU_EVENT_DISABLE_TIMING),
                      "create an event");
}

/* Starts a collective of ranks that are processes, with NCCL, on the stream for collectives. The
 * event `mark` is recorded first after the kernels that compute the data, and again after the
 * collective. These calls may be captured in a graph. */
static enum status start_nccl(const struct kernel_call *c, enum collective what)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    struct rank_call *r;
    struct nccl *n;
    TRY(rank_call_of(c, 0, &r));
    TRY(cuda_ranks_nccl(c->context, c->communicator, &n));
    TRY(cuda_check(d->cuEventRecord(r->mark, cuda_stream(c->context)), "record an event"));
    TRY(cuda_check(d->cuStreamWaitEvent(r->stream, r->mark, CU_EVENT_WAIT_DEFAULT),
                   "wait for a gradient"));
    tracer_beside(cuda_tracer(c->context), true);
    enum status st = nccl_run(n, what, c->out[0], &c->out_type[0], r->stream);
    tracer_beside(cuda_tracer(c->context), false);
    TRY(st);
    nccl_note(n, c->out[0], r->mark);
    return cuda_check(d->cuEventRecord(r->mark, r->stream), "record an event");
}

static enum status await_nccl(const struct kernel_call *c)
{
    struct nccl *n;
    TRY(cuda_ranks_nccl(c->context, c->communicator, &n));
    return cuda_check(cuda_driver(NULL)->cuStreamWaitEvent(
                          cuda_stream(c->context), nccl_event(n, c->out[0]), CU_EVENT_WAIT_DEFAULT),
                      "wait for the other ranks");
}

static enum status start(const struct kernel_call *c, enum collective what, int launches)
{
    struct rank_call *r;
    if (!c->communicator) return ST_OK;
    if (!communicator_in_process(c->communicator)) return start_nccl(c, what);
    BUG_IF(c->out_type[0].dtype != DT_F32, "ranks that are threads sum floats");
    TRY(rank_call_of(c, launches, &r));
    if (launches) cuda_count_launch(c->context, "sum_ranks");
    TRY(cuda_check(cuda_driver(NULL)->cuEventRecord(r->mark, cuda_stream(c->context)),
                   "record an event"));
    return communicator_start_in(c->communicator, what, c->out[0], type_elements(&c->out_type[0]),
                                 &memory, r);
}

static enum status all_reduce(const struct kernel_call *c)
{
    return start(c, COLLECTIVE_ALL_REDUCE, 1);
}

static enum status reduce_scatter(const struct kernel_call *c)
{
    return start(c, COLLECTIVE_REDUCE_SCATTER, 1);
}

static enum status all_gather(const struct kernel_call *c)
{
    return start(c, COLLECTIVE_ALL_GATHER, 0);
}

static enum status broadcast(const struct kernel_call *c)
{
    return start(c, COLLECTIVE_BROADCAST, 0);
}

static enum status await(const struct kernel_call *c)
{
    if (!communicator_in_process(c->communicator)) return await_nccl(c);
    return communicator_wait(c->communicator, c->out[0]);
}

/* Describes the kernel for planning. The real arguments are known only when it runs (sum): the
 * addresses of all ranks, the shard, and the ranks that get the sum. */
static void sum_of_shard(const struct kernel_call *c, struct cuda_launches *l)
{
    static const char *const names[MOST] = {"rank0", "rank1", "rank2", "rank3",
                                            "rank4", "rank5", "rank6", "rank7"};
    struct group_shard largest =
        group_shard(type_elements(&c->out_type[0]), (int)c->attr->group.ranks, 0);
    struct cuda_launch *k =
        launch_add(l, "collective.cu", "sum_ranks", ceil_div(largest.end, THREADS * EACH), THREADS);
    launch_define(k, "RANKS", min_i64(c->attr->group.ranks, MOST));
    for (int r = 0; r < MOST; r++) arg_out(k, names[r], 0);
    arg_i64(k, "first", largest.first);
    arg_i64(k, "end", largest.end);
    arg_i32(k, "to_first", 0);
    arg_i32(k, "to_end", c->attr->group.ranks);
}

static void nothing(const struct kernel_call *, struct cuda_launches *) {}

#define COLLECTIVE_ROW(op_name, run_fn, launches_fn) \
    {                                                \
        .kernel = {.op = OP_##op_name,               \
                   .variant = "ranks",               \
                   .in = "a",                        \
                   .out = "a",                       \
                   .act = DT_COUNT,                  \
                   .prepare = cuda_prepare,          \
                   .release = release,               \
                   .run = run_fn},                   \
        .launches = launches_fn,                     \
    }
const struct cuda_row collective_rows[] = {
    COLLECTIVE_ROW(ALL_REDUCE, all_reduce, sum_of_shard),
    COLLECTIVE_ROW(REDUCE_SCATTER, reduce_scatter, sum_of_shard),
    COLLECTIVE_ROW(ALL_GATHER, all_gather, nothing),
    COLLECTIVE_ROW(BROADCAST, broadcast, nothing),
    COLLECTIVE_ROW(AWAIT, await, nothing),
    CUDA_ROWS_END,
};
