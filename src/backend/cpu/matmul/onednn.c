/* Each matmul is one oneDNN matmul primitive. It is created with the plan, and oneDNN generates its
 * code at that time. A run sets the addresses and executes the primitive, with the scratch of the
 * call as its workspace. Inside oneDNN, each execution allocates a map of the arguments, a few
 * hundred bytes.
 *
 * If oneDNN reports that it is out of memory, the call fails. heap.h ends the process if C++'s
 * `new` fails inside oneDNN, so no exception passes through these C functions.
 *
 * The function dnnl_sgemm is not used: measured on 2 cores with AVX-512, it is as fast as the
 * primitive on single matmuls but half as fast on the batches of small matmuls in attention, and it
 * allocates its workspace in every call. */
#include "backend/cpu/matmul/onednn.h"

#include "backend/cpu/matmul/matmul.h"
#include "backend/cpu/matmul/onednn_isa.h"
#include "base/heap.h"
#include "base/threads.h"

#ifdef HAVE_DNNL

#include "backend/cpu/matmul/onednn2.h"

#include <pthread.h>
#include <stdlib.h>

enum { ARGS = 5 }; /* A, B, C, workspace, and the bias if there is one */

struct state {
    dnnl_primitive_t primitive;
    int n;
    dnnl_exec_arg_t arg[ARGS];
};

/* One engine and one stream for the process, opened when the first matmul is planned. */
static dnnl_engine_t engine;
static dnnl_stream_t stream;

static enum status check(dnnl_status_t st, const char *what)
{
    if (st == dnnl_success) return ST_OK;
    if (st == dnnl_out_of_memory)
        return fail(ST_MEMORY,
                    "out of host memory: oneDNN cannot %s; use a smaller batch_size or "
                    "model, or close other programs",
                    what);
    return fail(ST_DEVICE, "oneDNN cannot %s (its status is %d)", what, (int)st);
}

static enum status create(void)
{
    if (stream) return ST_OK;
    TRY(onednn_limit());
    if (!engine) TRY(check(dnnl_engine_create(&engine, dnnl_cpu, 0), "open the CPU"));
    return check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "open a stream");
}

/* Locks, because ranks that are threads plan their matmuls at the same time. */
static enum status open_library(void)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one);
    enum status st = create();
    pthread_mutex_unlock(&one);
    return st;
}

static dnnl_data_type_t data_type(enum dtype dtype)
{
    return dtype == DT_BF16 ? dnnl_bf16 : dnnl_f32;
}

/* A batch of rows x columns with these strides; a single matrix has no batch dimension. The caller
 * destroys each description. */
static enum status describe_matrix(const struct matmul *p, enum dtype dtype, int64_t rows,
                                   int64_t columns, int64_t row_stride, int64_t column_stride,
                                   dnnl_memory_desc_t *ret_desc)
{
    dnnl_dims_t dims = {p->batch, rows, columns};
    dnnl_dims_t strides = {rows * columns, row_stride, column_stride};
    int skip = p->batch == 1;
    dnnl_status_t st = dnnl_memory_desc_create_with_strides(ret_desc, 3 - skip, dims + skip,
                                                            data_type(dtype), strides + skip);
    return check(st, "describe a matrix");
}

/* B in the layout of the graph. */
static enum status describe_plain(const struct matmul *p, dnnl_memory_desc_t *ret_desc)
{
    return describe_matrix(p, p->type, p->K, p->N, p->b_row, p->b_column, ret_desc);
}

/* B in the layout that the library prefers. */
static enum status describe_any(const struct matmul *p, dnnl_memory_desc_t *ret_desc)
{
    dnnl_dims_t dims = {p->K, p->N};
    return check(dnnl_memory_desc_create_with_tag(ret_desc, 2, dims, data_type(p->type),
                                                  dnnl_format_tag_any),
                 "describe a packed matrix");
}

/* The attributes of every primitive: its workspace is an argument. The caller destroys them. */
static enum status create_attributes(dnnl_primitive_attr_t *ret_attr)
{
    TRY(check(dnnl_primitive_attr_create(ret_attr), "create attributes"));
    return check(dnnl_primitive_attr_set_scratchpad_mode(*ret_attr, dnnl_scratchpad_mode_user),
                 "take its workspace from Strobe");
}

/* The description of a matmul primitive; the caller destroys it. */
static enum status describe(const struct matmul *p, dnnl_primitive_desc_t *ret_desc)
{
    enum status st;
    dnnl_memory_desc_t a = NULL, b = NULL, bias = NULL, c = NULL;
    dnnl_primitive_attr_t attr = NULL;
    TRY_OUT(st, open_library());
    TRY_OUT(st, describe_matrix(p, p->type, p->M, p->K, p->a_row, p->a_column, &a));
    TRY_OUT(st, p->packed ? describe_any(p, &b) : describe_plain(p, &b));
    if (p->bias) TRY_OUT(st, describe_matrix(p, DT_F32, 1, p->N, p->N, 1, &bias));
    TRY_OUT(st, describe_matrix(p, p->result, p->M, p->N, p->N, 1, &c));
    TRY_OUT(st, create_attributes(&attr));
    TRY_OUT(st, check(dnnl_matmul_primitive_desc_create(ret_desc, engine, a, b, bias, c, attr),
                      "multiply matrices of these types and shapes"));
out:
    dnnl_primitive_attr_destroy(attr);
    dnnl_memory_desc_destroy(a);
    dnnl_memory_desc_destroy(b);
    dnnl_memory_desc_destroy(bias);
    dnnl_memory_desc_destroy(c);
    return st;
}

static enum status fail_unforeseen(void)
{
    return fail(ST_UNSUPPORTED, "oneDNN packs this weight in an unsupported layout; add "
                                "--pack_weights=false");
}

/* The graph reserves packed_elements for a packed weight; the library must not need more. */
static enum status check_packed_size(const struct matmul *p, const_dnnl_memory_desc_t packed)
{
    int64_t reserved = packed_elements(p->K, p->N) * dtype_size(p->type);
    return (int64_t)dnnl_memory_desc_get_size(packed) <= reserved ? ST_OK : fail_unforeseen();
}

/* Checks that the primitive wants B in the layout that PACK makes. PACK knows only the type and the
 * shape, so bias and result type must not change the layout. */
static enum status check_layout(const struct matmul *p, const_dnnl_primitive_desc_t desc)
{
    struct matmul plain = *p;
    plain.bias = false;
    plain.result = p->type;
    dnnl_primitive_desc_t other;
    TRY(describe(&plain, &other));
    const_dnnl_memory_desc_t wanted = dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
    const_dnnl_memory_desc_t packed = dnnl_primitive_desc_query_md(other, dnnl_query_weights_md, 0);
    bool same = dnnl_memory_desc_equal(wanted, packed) != 0;
    enum status st = check_packed_size(p, wanted);
    dnnl_primitive_desc_destroy(other);
    return same ? st : fail_unforeseen();
}

static int64_t scratch_of(const_dnnl_primitive_desc_t desc)
{
    const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    return md ? (int64_t)dnnl_memory_desc_get_size(md) : 0;
}

/* Returns the scratch bytes of a call whose primitive could not be described: 0, because prepare
 * will fail for the same reason and report it. If `st` is ST_MEMORY, this ends the process instead:
 * memory may be free again when prepare runs, and the kernel would then run with too little
 * scratch. */
static int64_t no_scratch(enum status st)
{
    if (st == ST_MEMORY) heap_end(0);
    return 0;
}

static int64_t scratch_bytes(const struct kernel *, const struct kernel_call *c)
{
    struct matmul p = matmul_of(c);
    dnnl_primitive_desc_t desc;
    enum status st = describe(&p, &desc);
    if (st != ST_OK) return no_scratch(st);
    int64_t size = scratch_of(desc);
    dnnl_primitive_desc_destroy(desc);
    return size;
}

static void release_state(struct state *s)
{
    for (int i = 0; i < s->n; i++) dnnl_memory_destroy(s->arg[i].memory);
    if (s->primitive) dnnl_primitive_destroy(s->primitive);
    free(s);
}

/* Adds an argument: memory of the type that the primitive wants, without an address yet. */
static enum status add_argument(struct state *s, const_dnnl_primitive_desc_t desc,
                                dnnl_query_t what, int index, int name)
{
    const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(desc, what, index);
    dnnl_exec_arg_t *arg = &s->arg[s->n];
    TRY(check(dnnl_memory_create(&arg->memory, md, engine, DNNL_MEMORY_NONE),
              "create a memory object"));
    arg->arg = name;
    s->n++;
    return ST_OK;
}

static enum status add_matmul_arguments(struct state *s, const struct matmul *p,
                                        const_dnnl_primitive_desc_t desc)
{
    if (p->packed) TRY(check_layout(p, desc));
    TRY(add_argument(s, desc, dnnl_query_src_md, 0, DNNL_ARG_SRC));
    TRY(add_argument(s, desc, dnnl_query_weights_md, 0, DNNL_ARG_WEIGHTS));
    TRY(add_argument(s, desc, dnnl_query_dst_md, 0, DNNL_ARG_DST));
    TRY(add_argument(s, desc, dnnl_query_scratchpad_md, 0, DNNL_ARG_SCRATCHPAD));
    if (p->bias) TRY(add_argument(s, desc, dnnl_query_weights_md, 1, DNNL_ARG_BIAS));
    return ST_OK;
}

/* Creates the primitive of a call, with its arguments, and releases `desc`. */
static enum status make_state(struct kernel_call *c, const struct matmul *p,
                              dnnl_primitive_desc_t desc,
                              enum status (*add_arguments)(struct state *s, const struct matmul *p,
                                                           const_dnnl_primitive_desc_t desc))
{
    struct state *s = HEAP_NEW(struct state, 1);
    enum status st = add_arguments(s, p, desc);
    if (st == ST_OK) st = check(dnnl_primitive_create(&s->primitive, desc), "create a primitive");
    dnnl_primitive_desc_destroy(desc);
    if (st == ST_OK)
        c->state = s;
    else
        release_state(s);
    return st;
}

static enum status prepare(const struct kernel *, struct kernel_call *c)
{
    struct matmul p = matmul_of(c);
    dnnl_primitive_desc_t desc;
    TRY(describe(&p, &desc));
    return make_state(c, &p, desc, add_matmul_arguments);
}

static void release(struct kernel_call *c)
{
    if (c->state) release_state(c->state);
    c->state = NULL;
}

/* --- PACK: a reorder from the graph's layout into the layout of the matmul --- */

static enum status describe_pack(const struct matmul *p, dnnl_primitive_desc_t *ret_desc)
{
    enum status st;
    dnnl_primitive_desc_t matmul = NULL;
    dnnl_memory_desc_t plain = NULL;
    dnnl_primitive_attr_t attr = NULL;
    TRY_OUT(st, describe(p, &matmul));
    TRY_OUT(st, describe_plain(p, &plain));
    TRY_OUT(st, create_attributes(&attr));
    const_dnnl_memory_desc_t packed =
        dnnl_primitive_desc_query_md(matmul, dnnl_query_weights_md, 0);
    TRY_OUT(st,
            check(dnnl_reorder_primitive_desc_create(ret_desc, plain, engine, packed, engine, attr),
                  "pack a matrix of this type and shape"));
out:
    dnnl_primitive_attr_destroy(attr);
    dnnl_memory_desc_destroy(plain);
    if (matmul) dnnl_primitive_desc_destroy(matmul);
    return st;
}

static int64_t pack_scratch(const struct kernel *, const struct kernel_call *c)
{
    struct matmul p = matmul_of_pack(c);
    dnnl_primitive_desc_t desc;
    enum status st = describe_pack(&p, &desc);
    if (st != ST_OK) return no_scratch(st);
    int64_t size = scratch_of(desc);
    dnnl_primitive_desc_destroy(desc);
    return size;
}

static enum status add_pack_arguments(struct state *s, const struct matmul *p,
                                      const_dnnl_primitive_desc_t desc)
{
    TRY(check_packed_size(p, dnnl_primitive_desc_query_md(desc, dnnl_query_dst_md, 0)));
    TRY(add_argument(s, desc, dnnl_query_src_md, 0, DNNL_ARG_FROM));
    TRY(add_argument(s, desc, dnnl_query_dst_md, 0, DNNL_ARG_TO));
    return add_argument(s, desc, dnnl_query_scratchpad_md, 0, DNNL_ARG_SCRATCHPAD);
}

static enum status prepare_pack(const struct kernel *, struct kernel_call *c)
{
    struct matmul p = matmul_of_pack(c);
    dnnl_primitive_desc_t desc;
    TRY(describe_pack(&p, &desc));
    return make_state(c, &p, desc, add_pack_arguments);
}

static enum status execute(const struct state *s, void *const *at)
{
    threads_unseen();
    for (int i = 0; i < s->n; i++)
        TRY(check(dnnl_memory_set_data_handle(s->arg[i].memory, at[i]), "set an address"));
    return check(dnnl_primitive_execute(s->primitive, stream, s->n, s->arg), "run a primitive");
}

static enum status run(const struct kernel_call *c)
{
    return execute(c->state, (void *[ARGS]){c->in[0], c->in[1], c->out[0], c->scratch, c->in[2]});
}

static enum status run_pack(const struct kernel_call *c)
{
    return execute(c->state, (void *[ARGS]){c->in[0], c->out[0], c->scratch});
}

/* oneDNN supports bf16 from AVX-512 on. On a processor that has AVX-512 but no bf16 instructions,
 * oneDNN's bf16 matmul takes four times as long as blocked.c, which converts to fp32
 * (docs/log/cpu.md). */
static bool has_bf16(void)
{
    if (onednn_limit() != ST_OK) return false; /* too late after the query below */
    return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) ==
           dnnl_cpu_isa_avx512_core_bf16;
}

static bool fits(const struct kernel_call *c)
{
    enum dtype type = c->in_type[0].dtype, result = c->out_type[0].dtype;
    if (c->in_type[1].dtype != type) return false;
    if (c->n_in > 2 && c->in_type[2].dtype != DT_F32) return false;
    if (type == DT_F32) return result == DT_F32;
    return type == DT_BF16 && (result == DT_F32 || result == DT_BF16) && has_bf16();
}

static bool fits_pack(const struct kernel_call *c)
{
    enum dtype type = c->in_type[0].dtype;
    return type == DT_F32 || (type == DT_BF16 && has_bf16());
}

/* clang-format off */
const struct kernel onednn_rows[] = {
    {.op = OP_MATMUL, .variant = "onednn", .fits = fits, .scratch_bytes = scratch_bytes,
     .prepare = prepare, .release = release, .run = run},
    {.op = OP_LINEAR, .variant = "onednn", .fits = fits, .scratch_bytes = scratch_bytes,
     .prepare = prepare, .release = release, .run = run},
    {.op = OP_PACK, .variant = "onednn", .fits = fits_pack, .scratch_bytes = pack_scratch,
     .prepare = prepare_pack, .release = release, .run = run_pack},
    {0},
};
/* clang-format on */

#else

const struct kernel onednn_rows[] = {{0}};

#endif
