/* Copies for cuBLASLt: of a bias, rounded to the output's type, and of large matrices whose rows
 * are not multiples of 16 bytes, such as logits over a vocabulary of 50257. */
#include "backend/cuda/matmul/matmul.h"

/* Copies do not pay for matrices below COPIED_BYTES, or if M, N or K is below LENGTH_LEAST. */
enum { ROW_BYTES = 16, COPIED_BYTES = 1 << 20, LENGTH_LEAST = 128, SCRATCH_ALIGN = 256 };

/* A row-major matrix in memory. */
struct matrix {
    enum dtype dtype;
    int64_t rows, columns;
};

static struct matrix a_of(const struct matmul *p)
{
    return (struct matrix){p->in, p->ta ? p->K : p->M, p->ta ? p->M : p->K};
}

static struct matrix b_of(const struct matmul *p)
{
    return (struct matrix){p->in, p->tb ? p->N : p->K, p->tb ? p->K : p->N};
}

static struct matrix out_of(const struct matmul *p)
{
    return (struct matrix){p->out, p->M, p->N};
}

static int64_t bytes_of(struct matrix m)
{
    return m.rows * m.columns * dtype_size(m.dtype);
}

static bool is_misaligned(struct matrix m)
{
    return m.columns * dtype_size(m.dtype) % ROW_BYTES != 0 && bytes_of(m) >= COPIED_BYTES;
}

static bool differ(struct matrix a, struct matrix b)
{
    return a.rows != b.rows || a.columns != b.columns;
}

/* Pads only plain matmuls on tensor cores, because tensor cores need aligned rows. A padded
 * dimension has its new length in all matrices with this dimension: if K is padded, both a and b
 * get zeros. */
struct matmul matmul_padded(const struct matmul *p)
{
    struct matmul padded = *p;
    bool tensor = p->in == DT_BF16 || p->tf32, plain = p->epilogue == EPILOGUE_STORE && !p->bias;
    if (!tensor || !plain || p->batch > 1) return padded;
    if (p->M < LENGTH_LEAST || p->N < LENGTH_LEAST || p->K < LENGTH_LEAST) return padded;
    if (!is_misaligned(a_of(p)) && !is_misaligned(b_of(p)) && !is_misaligned(out_of(p)))
        return padded;
    int64_t n = ROW_BYTES / dtype_size(p->in);
    padded.N = round_up(p->N, n);
    if (p->ta) padded.M = round_up(p->M, n);
    if (!p->ta || p->tb) padded.K = round_up(p->K, n);
    return padded;
}

/* True if the bias must be rounded: the library requires a bias of the output's type, so an f32
 * bias of a bf16 output is rounded, as in PyTorch. */
static bool rounds_bias(enum op op, const struct kernel_call *c)
{
    return matmul_has_bias(op, c) && c->in_type[2].dtype == DT_F32 &&
           c->out_type[0].dtype == DT_BF16;
}

static int64_t reserve(struct matmul_copies *r, int64_t bytes)
{
    int64_t at = r->bytes;
    r->bytes += round_up(bytes, SCRATCH_ALIGN);
    return at;
}

static int64_t reserve_matrix(struct matmul_copies *r, struct matrix given, struct matrix padded)
{
    return differ(given, padded) ? reserve(r, bytes_of(padded)) : COPY_NONE;
}

struct matmul_copies matmul_copies(enum op op, const struct kernel_call *c)
{
    struct matmul_copies r = {COPY_NONE, COPY_NONE, COPY_NONE, COPY_NONE, 0};
    struct matmul p, padded;
    if (!gemm_of(op, c, &p)) return r;
    padded = matmul_padded(&p);
    if (rounds_bias(op, c)) r.bias = reserve(&r, p.N * dtype_size(DT_BF16));
    r.a = reserve_matrix(&r, a_of(&p), a_of(&padded));
    r.b = reserve_matrix(&r, b_of(&p), b_of(&padded));
    r.out = reserve_matrix(&r, out_of(&p), out_of(&padded));
    return r;
}

int64_t matmul_copied_bytes(const struct matmul *p)
{
    struct matmul padded = matmul_padded(p);
    int64_t bytes = 0;
    if (differ(a_of(p), a_of(&padded))) bytes += bytes_of(a_of(p)) + bytes_of(a_of(&padded));
    if (differ(b_of(p), b_of(&padded))) bytes += bytes_of(b_of(p)) + bytes_of(b_of(&padded));
    if (differ(out_of(p), out_of(&padded))) bytes += 2 * bytes_of(out_of(p));
    return bytes;
}

static void launch_round_bias(struct cuda_launches *l, int64_t n, int64_t to)
{
    enum { THREADS = 256 };
    struct cuda_launch *k = launch_add(l, "bias.cu", "narrow", ceil_div(n, THREADS), THREADS);
    arg_in(k, "from", 2);
    arg_scratch(k, "to_bf16", to);
    arg_i32(k, "n", n);
}

enum { PAD_THREADS = 256, PAD_TIMES = 4 };

/* Adds a launch over `words` words of 16 bytes. */
static struct cuda_launch *launch_words(struct cuda_launches *l, const char *entry, int64_t words,
                                        enum dtype dtype)
{
    int64_t each = (int64_t)PAD_THREADS * PAD_TIMES;
    struct cuda_launch *k = launch_add(l, "pad.cu", entry, ceil_div(words, each), PAD_THREADS);
    launch_define_type(k, "T_X", dtype);
    return k;
}

static void launch_pad(struct cuda_launches *l, int in, int64_t to, struct matrix from,
                       struct matrix padded)
{
    int64_t words = bytes_of(padded) / ROW_BYTES;
    struct cuda_launch *k = launch_words(l, "pad", words, from.dtype);
    arg_in(k, "x", in);
    arg_scratch(k, "y", to);
    arg_u32(k, "words", words);
    arg_u32(k, "rows", from.rows);
    arg_u32(k, "columns", from.columns);
    arg_u32(k, "width", padded.columns);
}

static void launch_cut(struct cuda_launches *l, int64_t from, struct matrix padded,
                       struct matrix to)
{
    int64_t words = ceil_div(bytes_of(to), ROW_BYTES);
    struct cuda_launch *k = launch_words(l, "cut", words, to.dtype);
    arg_scratch(k, "x", from);
    arg_out(k, "y", 0);
    arg_i64(k, "n", to.rows * to.columns);
    arg_u32(k, "columns", to.columns);
    arg_u32(k, "width", padded.columns);
}

static void before(const struct kernel_call *c, struct cuda_launches *l)
{
    enum op op = l->row->kernel.op;
    struct matmul_copies at = matmul_copies(op, c);
    struct matmul p, padded;
    if (!gemm_of(op, c, &p)) return;
    padded = matmul_padded(&p);
    if (at.bias != COPY_NONE) launch_round_bias(l, p.N, at.bias);
    if (at.a != COPY_NONE) launch_pad(l, 0, at.a, a_of(&p), a_of(&padded));
    if (at.b != COPY_NONE) launch_pad(l, 1, at.b, b_of(&p), b_of(&padded));
}

static void after(const struct kernel_call *c, struct cuda_launches *l)
{
    struct matmul_copies at = matmul_copies(OP_MATMUL, c);
    struct matmul p, padded;
    if (at.out == COPY_NONE || !gemm_of(OP_MATMUL, c, &p)) return;
    padded = matmul_padded(&p);
    launch_cut(l, at.out, out_of(&padded), out_of(&p));
}

const struct cuda_row matmul_before[] = {
    CUDA_ROW(MATMUL, "before", NULL, NULL, NULL, before),
    CUDA_ROW(LINEAR, "before", NULL, NULL, NULL, before),
    CUDA_ROW(LINEAR_GELU, "before", NULL, NULL, NULL, before),
    CUDA_ROWS_END,
};

const struct cuda_row matmul_after[] = {
    CUDA_ROW(MATMUL, "after", NULL, NULL, NULL, after),
    CUDA_ROWS_END,
};
