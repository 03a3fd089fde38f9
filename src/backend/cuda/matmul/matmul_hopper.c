/* Matmuls with GELU or its gradient as the epilogue, with WGMMA (compute capability 9.0). */
#include "backend/cuda/cuda_kernels.h"
#include "backend/cuda/matmul/matmul.h"
#include "backend/cuda/runtime/tensor_map.h"

/* These constants have the same values in matmul_hopper.cu. */
enum { WARPGROUP = 128, CONSUMERS = 2, DEPTH = 64, CHUNK = 64, PANEL_ROWS = 16 };
enum { BARRIERS_BYTES = 1024, ROW_ELEMENTS = 8 };

/* Compile-time constants of the kernel. `group` consecutive tiles of a column reuse b from L2. */
struct tiling {
    int tiles, columns, stages, panels, group;
};

enum { WIDE, NARROW };
static const struct tiling tilings[] = {
    [WIDE] = {.tiles = 2, .columns = 192, .stages = 4, .panels = 4, .group = 16},
    [NARROW] = {.tiles = 2, .columns = 128, .stages = 5, .panels = 4, .group = 16},
};

static int rows_of(const struct tiling *t)
{
    enum { MATMUL_ROWS = 64 };
    return MATMUL_ROWS * t->tiles;
}

static int64_t tiles_of(const struct tiling *t, const struct matmul *p)
{
    return ceil_div(p->M, rows_of(t)) * ceil_div(p->N, t->columns);
}

/* The tiling with the shortest estimated time; a tile takes columns + OVERHEAD units of time (fit
 * to an H200). */
static const struct tiling *tiling_of(const struct matmul *p, int64_t blocks)
{
    enum { OVERHEAD = 40 };
    const struct tiling *best = NULL;
    int64_t least = INT64_MAX;
    for (int i = 0; i < COUNT_OF(tilings); i++) {
        int64_t rounds = ceil_div(tiles_of(&tilings[i], p), blocks);
        int64_t time = rounds * (tilings[i].columns + OVERHEAD);
        if (time < least) least = time, best = &tilings[i];
    }
    return best;
}

static int64_t shared_bytes(const struct tiling *t)
{
    int64_t stage = 2 * DEPTH * (rows_of(t) + t->columns);
    int64_t panels = 2 * PANEL_ROWS * CHUNK * 4 * CONSUMERS * t->panels;
    return t->stages * stage + panels + BARRIERS_BYTES;
}

static bool is_whole(int64_t n)
{
    return n > 0 && n % ROW_ELEMENTS == 0 && n <= INT32_MAX / 2;
}

/* Like gemm_of, but accepts both forms of GELU. */
bool matmul_hopper_of(enum op op, const struct kernel_call *c, struct matmul *ret)
{
    const struct type *a = &c->in_type[0], *b = &c->in_type[1], *y = &c->out_type[0];
    bool linear = op == OP_LINEAR_GELU;
    if (op == OP_MATMUL) return matmul_hopper_plain_of(c, ret);
    if (linear ? c->attr->linear.packed : c->attr->matmul.packed) return false;
    if (c->numerics.portable) return false;
    if (!linear && c->attr->matmul.ta) return false;
    if (a->dtype != DT_BF16 || b->dtype != DT_BF16 || y->dtype != DT_BF16 || b->rank != 2)
        return false;
    *ret = (struct matmul){.in = a->dtype, .in_b = a->dtype, .out = y->dtype, .batch = 1};
    ret->epilogue = !linear                ? EPILOGUE_GELU_GRAD
                    : c->attr->linear.keep ? EPILOGUE_GELU_KEEP
                                           : EPILOGUE_GELU;
    ret->bias = matmul_has_bias(op, c);
    ret->bias_type = c->in_type[2].dtype;
    ret->erf = linear ? !c->attr->linear.tanh : !c->attr->matmul.tanh;
    ret->deterministic = c->numerics.deterministic;
    ret->tb = linear ? c->attr->linear.tb : c->attr->matmul.tb;
    ret->M = type_rows(y);
    ret->N = type_columns(y);
    ret->K = type_columns(a);
    return true;
}

static bool fits(enum op op, const struct kernel_call *c)
{
    struct matmul p;
    if (!cuda_hopper(c) || !matmul_hopper_of(op, c, &p)) return false;
    if (p.bias && c->in_type[2].dtype != DT_F32 && c->in_type[2].dtype != DT_BF16) return false;
    if (p.epilogue == EPILOGUE_GELU_GRAD && c->in_type[2].dtype != DT_BF16) return false;
    return p.M > 0 && p.M <= INT32_MAX / 2 && is_whole(p.N) && is_whole(p.K);
}

static bool fits_gelu(const struct kernel_call *c)
{
    return fits(OP_LINEAR_GELU, c);
}

static bool fits_gelu_grad(const struct kernel_call *c)
{
    return fits(OP_MATMUL_GELU_GRAD, c);
}

static void launch(const struct kernel_call *c, struct cuda_launches *l)
{
    enum op op = l->row->kernel.op;
    struct matmul p;
    bool fine = matmul_hopper_of(op, c, &p);
    BUG_IF(!fine, "a matmul that does not fit its kernel");
    bool grad = op == OP_MATMUL_GELU_GRAD, keep = p.epilogue == EPILOGUE_GELU_KEEP;
    int64_t blocks = cuda_device_of(c)->processors;
    const struct tiling *t = tiling_of(&p, blocks);
    int64_t tiles = tiles_of(t, &p);
    struct cuda_launch *k =
        launch_add(l, "matmul_hopper.cu", l->row->entry, tiles < blocks ? tiles : blocks,
                   WARPGROUP * (CONSUMERS + 1));
    k->arch = 90;
    launch_define(k, "TILES", t->tiles);
    launch_define(k, "COLUMNS", t->columns);
    launch_define(k, "STAGES", t->stages);
    launch_define(k, "PANELS", t->panels);
    launch_define(k, "TRANSPOSED", p.tb);
    launch_define(k, "TANH", grad ? c->attr->matmul.tanh : c->attr->linear.tanh);
    launch_define(k, "WHAT", grad ? 2 : 1);
    if (!grad) {
        launch_define(k, "KEEP", keep);
        launch_define(k, "BIAS", p.bias);
        launch_define_type(k, "T_BIAS", p.bias ? c->in_type[2].dtype : DT_F32);
    }
    arg_matrix(k, "a_map", ARG_IN, 0, p.M, p.K, rows_of(t), DEPTH);
    if (p.tb)
        arg_matrix(k, "b_map", ARG_IN, 1, p.N, p.K, t->columns, DEPTH);
    else
        arg_matrix(k, "b_map", ARG_IN, 1, p.K, p.N, DEPTH, CHUNK);
    arg_matrix(k, "y_map", ARG_OUT, 0, p.M, p.N, PANEL_ROWS, CHUNK);
    arg_matrix(k, "x_map", grad ? ARG_IN : ARG_OUT, grad ? 2 : keep, p.M, p.N, PANEL_ROWS, CHUNK);
    if (!grad) arg_in_if(k, p.bias, "bias", 2);
    arg_i32(k, "M", p.M);
    arg_i32(k, "N", p.N);
    arg_i32(k, "K", p.K);
    arg_i32(k, "group", t->group);
    k->shared_bytes = (unsigned)shared_bytes(t);
}

const struct cuda_row matmul_hopper_rows[] = {
    CUDA_ROW(LINEAR_GELU, "wgmma", NULL, NULL, fits_gelu, launch, "matmul_gelu"),
    CUDA_ROW(MATMUL_GELU_GRAD, "wgmma", NULL, NULL, fits_gelu_grad, launch, "matmul_gelu_grad"),
    CUDA_ROWS_END,
};

const struct kernel *matmul_hopper_row(int op, const struct kernel_call *c)
{
    static const struct cuda_row *const tables[] = {matmul_hopper_rows, matmul_hopper_plain_rows};
    for (int i = 0; i < COUNT_OF(tables); i++)
        for (const struct cuda_row *row = tables[i]; row->kernel.run; row++)
            if ((int)row->kernel.op == op && kernel_fits(&row->kernel, c)) return &row->kernel;
    return NULL;
}
