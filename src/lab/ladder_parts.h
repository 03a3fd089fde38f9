/* ladder_parts.h - what several ladders have in common: problems, shapes of kernels, bytes. */
#ifndef LAB_LADDER_PARTS_H
#define LAB_LADDER_PARTS_H

#include "lab/lab.h"

enum { LAB_THREADS = 256 }; /* threads of a block */

/* One input and one output of n elements, each moved once. */
static inline void lab_elementwise(struct lab_problem *p)
{
    p->in[0] = p->out = p->n[0];
    p->bytes = 2.0 * (double)p->n[0] * (double)dtype_size(p->dtype);
}

/* The tolerance of a ladder that only moves numbers. */
static inline double lab_exact(const struct lab_problem *)
{
    return 0;
}

/* The bytes that a CPU moves for an input and an output of the same size, if it reads each cache
 * line of the output before it stores to the line. */
static inline double lab_read_first(const struct lab_problem *p)
{
    return 1.5 * p->bytes;
}

static inline void lab_blocks(int64_t blocks, struct kernel_shape *ret)
{
    *ret = (struct kernel_shape){{(unsigned)blocks, 1, 1}, {LAB_THREADS, 1, 1}, 0};
}

static inline void lab_threads(int64_t threads, struct kernel_shape *ret)
{
    lab_blocks(ceil_div(threads, LAB_THREADS), ret);
}

/* lab_each: a thread for each element. lab_of_16_bytes: a thread for each 16 bytes of elements. */
static inline void lab_each(const struct lab_problem *p, struct kernel_shape *ret)
{
    lab_threads(p->n[0], ret);
}
static inline void lab_of_16_bytes(const struct lab_problem *p, struct kernel_shape *ret)
{
    lab_threads(ceil_div(p->n[0] * dtype_size(p->dtype), 16), ret);
}

/* lab_block_rows: a block for each row. lab_warp_rows: a warp for each row. */
static inline void lab_block_rows(const struct lab_problem *p, struct kernel_shape *ret)
{
    lab_blocks(p->n[0], ret);
}
static inline void lab_warp_rows(const struct lab_problem *p, struct kernel_shape *ret)
{
    lab_threads(32 * p->n[0], ret);
}

/* A block for each row; a thread holds 32 bytes of the row, and a block has whole warps. */
static inline void lab_rows_in_registers(const struct lab_problem *p, struct kernel_shape *ret)
{
    lab_block_rows(p, ret);
    ret->block[0] = (unsigned)round_up(ceil_div(p->n[1] * dtype_size(p->dtype), 32), 32);
}
static inline const char *lab_row_is_too_long(const struct lab_problem *p)
{
    return p->n[1] * dtype_size(p->dtype) > 32 * 1024
               ? "a row of more than 32 KiB does not fit into the registers of one block"
               : NULL;
}

#endif
