/* Launches of embed.cu, embed_grad.cu, embed_grad_sum.cu and embed_few.cu. */
#include "backend/cuda/embed/embed.h"

#include "backend/cuda/common/rows.h"

/* Constants of the kernel sources. */
enum { WARP = 32, THREADS = 256, PER_THREAD = 16 };
enum { SORTERS = 512, RANGE = 512, ADDERS = 128, CHUNK = 16, SCANNED = 2048 };
enum { MOST_THREADS = 256, SUMMED_BY = 4 };
/* The most id comparisons (table rows times ids) with which embed_scan is faster than the sort,
 * which has two more launches. */
static const int64_t SCAN_WORK = 4 << 20;

static struct cuda_launch *rows_launch(const struct kernel_call *c, struct cuda_launches *l,
                                       const char *entry, enum dtype from, int per_thread)
{
    int64_t n = type_elements(&c->out_type[0]);
    struct cuda_launch *k =
        launch_add(l, "embed.cu", entry, ceil_div(n, (int64_t)THREADS * per_thread), THREADS);
    launch_define_type(k, "T_X", from);
    launch_define_type(k, "T_Y", c->out_type[0].dtype);
    return k;
}

/* True if rows are whole vectors; a vector is 16 bytes of the wider type. */
static bool whole_vectors(const struct kernel_call *c)
{
    bool bf16 = c->in_type[0].dtype == DT_BF16 && c->out_type[0].dtype == DT_BF16;
    return type_columns(&c->out_type[0]) % (bf16 ? 8 : 4) == 0;
}

void embed_launches(const struct kernel_call *c, struct cuda_launches *l)
{
    bool vectors = whole_vectors(c);
    struct cuda_launch *k = rows_launch(c, l, vectors ? "embed" : "embed_any", c->in_type[0].dtype,
                                        vectors ? PER_THREAD : 1);
    args_in(k, 0, "table ids");
    arg_out(k, "y", 0);
    arg_i64(k, "n", type_elements(&c->out_type[0]));
    arg_i32(k, "rows", type_rows(&c->in_type[0]));
    arg_i32(k, "C", type_columns(&c->in_type[0]));
}

static void sum_arguments(const struct kernel_call *c, struct cuda_launch *k, int64_t n)
{
    args_in(k, 0, "tokens ids positions position_ids step");
    arg_out(k, "y", 0);
    if (n)
        arg_i64(k, "n", n);
    else
        arg_i32(k, "sequences", type_rows(&c->out_type[0]) / type_elements(&c->in_type[3]));
    arg_i32(k, "rows", type_rows(&c->in_type[0]));
    arg_i32(k, "length", type_rows(&c->in_type[2]));
    arg_i32(k, "T", type_elements(&c->in_type[3]));
    arg_i32(k, "C", type_columns(&c->in_type[0]));
    arg_dropout(k, &c->attr->drop);
}

/* Constants of embed.cu. With enough blocks, a thread loops ROUNDS times. */
enum { SUMMED = 8, TOGETHER = 4, ROUNDS = 2, PHILOX_BYTES = 16, MOST_BLOCKS = 65535 };
void embed_sum_launches(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *y = &c->out_type[0];
    int64_t n = type_elements(y), C = type_columns(y), T = type_elements(&c->in_type[3]);
    if (C % PHILOX_BYTES) {
        sum_arguments(c, rows_launch(c, l, "embed_sum_any", c->in_type[0].dtype, 1), n);
        return;
    }
    int64_t down = ceil_div(n / C / T, TOGETHER * ROUNDS);
    struct cuda_launch *k =
        launch_add(l, "embed.cu", "embed_sum", ceil_div(T * C, (int64_t)THREADS * SUMMED), THREADS);
    launch_grid(k, ceil_div(T * C, (int64_t)THREADS * SUMMED),
                down < MOST_BLOCKS ? down : MOST_BLOCKS, 1);
    launch_define_type(k, "T_X", c->in_type[0].dtype);
    launch_define_type(k, "T_Y", y->dtype);
    sum_arguments(c, k, 0);
}

void pick_launches(const struct kernel_call *c, struct cuda_launches *l)
{
    struct cuda_launch *k = rows_launch(c, l, "pick", c->in_type[0].dtype, 1);
    args_in(k, 0, "x ids");
    arg_out(k, "y", 0);
    arg_i64(k, "rows", type_rows(&c->in_type[0]));
    arg_i32(k, "V", type_columns(&c->in_type[0]));
}

void pick_grad_launches(const struct kernel_call *c, struct cuda_launches *l)
{
    struct cuda_launch *k = rows_launch(c, l, "pick_grad", c->in_type[1].dtype, PER_THREAD);
    args_in(k, 0, "ids dy");
    arg_out(k, "y", 0);
    arg_i64(k, "n", type_elements(&c->out_type[0]));
    arg_i32(k, "V", type_columns(&c->out_type[0]));
}

/* --- the gradient of a table, alone or added to the first of three inputs --- */

static bool adds(const struct kernel_call *c)
{
    return c->n_in == 3;
}

static const struct type *ids_of(const struct kernel_call *c)
{
    return &c->in_type[adds(c)];
}

static const struct type *rows_of(const struct kernel_call *c)
{
    return &c->in_type[adds(c) + 1];
}

/* The tensor that the sums are added to, or NULL. */
static void arg_onto(struct cuda_launch *k, const struct kernel_call *c)
{
    arg_in_if(k, adds(c), "onto", 0);
}

static struct cuda_launch *grad_launch(const struct kernel_call *c, struct cuda_launches *l,
                                       const char *entry, int64_t blocks, int threads)
{
    struct cuda_launch *k = launch_add(l, "embed_grad.cu", entry, blocks, threads);
    launch_define_type(k, "T_X", rows_of(c)->dtype);
    return k;
}

bool embed_grad_scans(const struct kernel_call *c)
{
    int64_t n = type_elements(ids_of(c));
    return n <= SCANNED && n * type_rows(&c->out_type[0]) <= SCAN_WORK;
}

void embed_scan_launches(const struct kernel_call *c, struct cuda_launches *l)
{
    struct cuda_launch *k = grad_launch(c, l, "embed_scan", type_rows(&c->out_type[0]), ADDERS);
    arg_onto(k, c);
    args_in(k, adds(c), "ids dy");
    arg_out(k, "table", 0);
    arg_i32(k, "n", type_elements(ids_of(c)));
    arg_i32(k, "C", type_columns(&c->out_type[0]));
}

/* Warps of a block of embed_few.cu, each with its own table in shared memory; 0: too few tables
 * fit. As in the kernel, a block has 64 columns, and the table one extra row. */
enum { WIDE = 64, FEW_WARPS = 3, MOST_WARPS = 12, PART_ADDERS = 128 };
static int few_warps(const struct kernel_call *c)
{
    int64_t bytes = (type_rows(&c->out_type[0]) + 1) * WIDE * (int64_t)sizeof(float);
    int64_t warps = cuda_device_of(c)->shared_bytes / bytes;
    if (warps < FEW_WARPS || type_columns(&c->out_type[0]) % WIDE) return 0;
    return warps > MOST_WARPS ? MOST_WARPS : (int)warps;
}

bool embed_grad_has_few_rows(const struct kernel_call *c)
{
    return few_warps(c) > 0;
}

void embed_few_launches(const struct kernel_call *c, struct cuda_launches *l)
{
    int64_t n = type_elements(ids_of(c)), V = type_rows(&c->out_type[0]);
    int64_t C = type_columns(&c->out_type[0]), cuts = l->device->processors / (C / WIDE);
    int warps = few_warps(c);
    if (cuts < 1) cuts = 1;
    if (cuts > ceil_div(n, warps)) cuts = ceil_div(n, warps);
    int64_t sums = launch_scratch(l, cuts * V * C * (int64_t)sizeof(float));
    struct cuda_launch *k = launch_add(l, "embed_few.cu", "embed_few", 1, warps * WARP);
    launch_grid(k, C / WIDE, cuts, 1);
    launch_define_type(k, "T_X", rows_of(c)->dtype);
    launch_define(k, "WARPS", warps);
    k->shared_bytes = (unsigned)(warps * (V + 1) * WIDE * (int64_t)sizeof(float));
    args_in(k, adds(c), "ids dy");
    arg_scratch(k, "parts", sums);
    arg_i32(k, "n", n);
    arg_i32(k, "V", V);
    arg_i32(k, "C", C);
    arg_i32(k, "share", ceil_div(n, cuts));
    k = launch_add(l, "embed_few.cu", "embed_parts", ceil_div(V * C, PART_ADDERS), PART_ADDERS);
    launch_define_type(k, "T_X", rows_of(c)->dtype);
    launch_define(k, "WARPS", warps);
    arg_onto(k, c);
    arg_out(k, "table", 0);
    arg_scratch(k, "parts", sums);
    arg_i32(k, "count", cuts);
    arg_i32(k, "n", V * C);
}

/* Offsets in scratch: the sorted indices, their ids, and where each id begins. */
struct sorted {
    int64_t order, keys, start;
};

static struct sorted sort(const struct kernel_call *c, struct cuda_launches *l)
{
    int64_t n = type_elements(ids_of(c)), V = type_rows(&c->out_type[0]);
    int64_t range = ceil_div(V, l->device->processors), list = launch_scratch(l, 4 * n);
    struct sorted s = {launch_scratch(l, 4 * n), launch_scratch(l, 4 * n),
                       launch_scratch(l, 4 * (V + 1))};
    if (range > RANGE) range = RANGE;
    struct cuda_launch *k = grad_launch(c, l, "embed_order", ceil_div(V, range), SORTERS);
    arg_in(k, "ids", adds(c));
    arg_scratch(k, "list", list);
    arg_scratch(k, "order", s.order);
    arg_scratch(k, "keys", s.keys);
    arg_scratch(k, "start", s.start);
    arg_i32(k, "n", n);
    arg_i32(k, "V", V);
    arg_i32(k, "range", range);
    return s;
}

/* n threads rounded up to whole warps, at most `most`. */
static int64_t whole_warps(int64_t n, int64_t most)
{
    int64_t threads = round_up(n, WARP);
    return threads < most ? threads : most;
}

void embed_grad_launches(const struct kernel_call *c, struct cuda_launches *l)
{
    int64_t n = type_elements(ids_of(c)), V = type_rows(&c->out_type[0]);
    int64_t C = type_columns(&c->out_type[0]), columns = C % SUMMED_BY ? 1 : SUMMED_BY;
    int64_t threads = whole_warps(ceil_div(C, columns), MOST_THREADS);
    int64_t chunks = ceil_div(n, CHUNK), stripes = ceil_div(C, threads * columns);
    int64_t others = 2 * l->device->processors; /* blocks that write empty rows */
    struct sorted s = sort(c, l);
    int64_t part = launch_scratch(l, chunks * 2 * C * (int64_t)sizeof(float));
    struct cuda_launch *k = grad_launch(c, l, columns > 1 ? "embed_sums" : "embed_sums_any",
                                        chunks * stripes + (V < others ? V : others), (int)threads);
    arg_scratch(k, "order", s.order);
    arg_scratch(k, "keys", s.keys);
    arg_scratch(k, "start", s.start);
    arg_in(k, "dy", adds(c) + 1);
    arg_onto(k, c);
    arg_out(k, "table", 0);
    arg_scratch(k, "part", part);
    arg_i32(k, "chunks", chunks);
    arg_i32(k, "stripes", stripes);
    arg_i32(k, "V", V);
    arg_i32(k, "C", C);
    k = grad_launch(c, l, columns > 1 ? "embed_joins" : "embed_joins_any", chunks - 1,
                    (int)threads);
    launch_grid(k, chunks - 1, stripes, 1);
    arg_scratch(k, "keys", s.keys);
    arg_scratch(k, "start", s.start);
    arg_onto(k, c);
    arg_out(k, "table", 0);
    arg_scratch(k, "part", part);
    arg_i32(k, "V", V);
    arg_i32(k, "C", C);
}

/* The groups of a block share the sequences; each group has enough sequences to keep loads in
 * flight. */
enum { SEQUENCES = 16 };
void embed_grad_sum_launches(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *dy = &c->in_type[1];
    int64_t n = type_elements(&c->in_type[0]), V = type_rows(&c->out_type[0]);
    int64_t C = type_columns(dy), sequences = type_rows(dy) / n, N = 16 / dtype_size(dy->dtype);
    int64_t columns = C % N ? 1 : N, across = C / columns, groups = ceil_div(sequences, SEQUENCES);
    if (across > MOST_THREADS) across = MOST_THREADS;
    if (groups > MOST_THREADS / across) groups = MOST_THREADS / across;
    struct cuda_launch *k =
        launch_add(l, "embed_grad_sum.cu", columns > 1 ? "embed_grad_sum" : "embed_grad_sum_any",
                   n > V ? n : V, (int)whole_warps(across * groups, MOST_THREADS));
    launch_grid(k, n > V ? n : V, ceil_div(C, across * columns), 1);
    launch_define_type(k, "T_X", dy->dtype);
    args_in(k, 0, "ids dy");
    arg_out(k, "table", 0);
    arg_i32(k, "n", n);
    arg_i32(k, "sequences", sequences);
    arg_i32(k, "V", V);
    arg_i32(k, "C", C);
    arg_i32(k, "across", across);
}
