/* Kernels that start collectives on host memory and, for AWAIT, wait for one. The communicator runs
 * the collectives in its own thread while later kernels run. */
#include "backend/communicator.h"
#include "backend/cpu/cpu_kernels.h"

static bool fits(const struct kernel_call *c)
{
    return c->in_type[0].dtype == DT_F32;
}

static enum status start(const struct kernel_call *c, enum collective what)
{
    return communicator_start(c->communicator, what, c->out[0], type_elements(&c->out_type[0]));
}

static enum status all_reduce(const struct kernel_call *c)
{
    return start(c, COLLECTIVE_ALL_REDUCE);
}

static enum status reduce_scatter(const struct kernel_call *c)
{
    return start(c, COLLECTIVE_REDUCE_SCATTER);
}

static enum status all_gather(const struct kernel_call *c)
{
    return start(c, COLLECTIVE_ALL_GATHER);
}

static enum status broadcast(const struct kernel_call *c)
{
    return start(c, COLLECTIVE_BROADCAST);
}

static enum status await(const struct kernel_call *c)
{
    return communicator_wait(c->communicator, c->out[0]);
}

const struct kernel collective_kernels[] = {
    {.op = OP_ALL_REDUCE, .variant = "ranks", .fits = fits, .run = all_reduce},
    {.op = OP_REDUCE_SCATTER, .variant = "ranks", .fits = fits, .run = reduce_scatter},
    {.op = OP_ALL_GATHER, .variant = "ranks", .fits = fits, .run = all_gather},
    {.op = OP_BROADCAST, .variant = "ranks", .fits = fits, .run = broadcast},
    {.op = OP_AWAIT, .variant = "ranks", .fits = fits, .run = await},
    {.run = NULL},
};
