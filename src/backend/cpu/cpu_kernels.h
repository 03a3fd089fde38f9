/* cpu_kernels.h - the groups of CPU kernels and the search for a row in them; private to
 * backend/cpu.
 *
 * A group holds the kernels of one library or one instruction set: a list of tables that ends
 * with NULL. A table is an array of rows that ends with run == NULL. */
#ifndef BACKEND_CPU_CPU_KERNELS_H
#define BACKEND_CPU_CPU_KERNELS_H

#include "backend/kernel.h"
#include "base/isa.h"

struct kernel_group {
    const struct kernel *const *tables;
    /* The instruction set that the group needs. ISA_AUTO marks a library: its kernels run unless
     * the limit (base/isa.h) is ISA_PLAIN. */
    enum isa isa;
};

extern const struct kernel cast_kernels[];
extern const struct kernel chain_kernels[];
extern const struct kernel float8_kernels[];
extern const struct kernel collective_kernels[]; /* between ranks */
extern const struct kernel *const ref_f32_tables[];
extern const struct kernel *const ref_f64_tables[];

/* The n-th row, best first, that accepts the call and whose instruction set the limit allows; NULL
 * if there are no more such rows. */
const struct kernel *cpu_kernel(int op, const struct kernel_call *call, int n);

/* Row i of all groups; NULL after the last row. */
const struct kernel *cpu_row(int i);

#endif
