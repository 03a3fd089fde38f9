/* The reference kernels in double precision: the headers of ref/, compiled with REAL = double. */
#define REAL       double
#define REAL_DTYPE DT_F64
#define REF(name)  name##_f64

#include "backend/cpu/cpu_kernels.h"
#include "backend/cpu/ref/attention.h"
#include "backend/cpu/ref/loss.h"
#include "backend/cpu/ref/matmul.h"
#include "backend/cpu/ref/matmul_fused.h"
#include "backend/cpu/ref/move.h"
#include "backend/cpu/ref/norm.h"
#include "backend/cpu/ref/pointwise.h"
#include "backend/cpu/ref/rows.h"
#include "backend/cpu/ref/state.h"

const struct kernel *const ref_f64_tables[] = {
    REF(ref_pointwise), REF(ref_rows), REF(ref_matmul), REF(ref_move),         REF(ref_norm),
    REF(ref_attention), REF(ref_loss), REF(ref_state),  REF(ref_matmul_fused), NULL,
};
