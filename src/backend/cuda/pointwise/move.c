/* Heads, parts of rows, embeddings, picks (move.cu, parts.cu; embed.h). */
#include "backend/cuda/cuda_kernels.h"
#include "backend/cuda/embed/embed.h"

enum { THREADS = 256, TIMES = 4, LARGEST_WORD = 16 };

/* The largest word size that divides `bytes`. */
static int64_t word_of(int64_t bytes)
{
    int64_t word = LARGEST_WORD;
    while (bytes % word) word /= 2;
    return word;
}

static struct cuda_launch *heads_launch(const struct kernel_call *c, struct cuda_launches *l,
                                        const char *entry, const struct type *packed,
                                        const struct type *heads, int64_t word)
{
    int64_t words = type_bytes(packed) / word, per_block = THREADS * TIMES;
    int64_t KV = c->attr->heads.kv_heads, group = KV ? heads->dim[1] / KV : 1;
    struct cuda_launch *k = launch_add(l, "move.cu", entry, ceil_div(words, per_block), THREADS);
    launch_define(k, "WORD", word);
    launch_define(k, "GROUP", group);
    if (group > 1) launch_define_type(k, "T_X", packed->dtype);
    return k;
}

static void heads_shape(struct cuda_launch *k, const struct type *packed, const struct type *heads,
                        int64_t parts, int64_t word)
{
    arg_u32(k, "n", type_bytes(packed) / word);
    arg_u32(k, "T", heads->dim[2]);
    arg_u32(k, "P", parts);
    arg_u32(k, "H", heads->dim[1]);
    arg_u32(k, "D", heads->dim[3] * dtype_size(heads->dtype) / word);
}

static int64_t head_word(const struct type *heads)
{
    return word_of(heads->dim[3] * dtype_size(heads->dtype));
}

static const char *const x_names[MAX_PARTS] = {"x0", "x1", "x2", "x3"};
static const char *const y_names[MAX_PARTS] = {"y0", "y1", "y2", "y3"};

/* Kernels have a parameter for each of MAX_PARTS tensors. If there are fewer tensors, the last
 * tensor is passed for the missing tensors. */
static int present(int i, int n)
{
    return i < n ? i : n - 1;
}

static void split_heads(const struct kernel_call *c, struct cuda_launches *l)
{
    int64_t word = head_word(&c->out_type[0]);
    struct cuda_launch *k =
        heads_launch(c, l, "split_heads", &c->in_type[0], &c->out_type[0], word);
    arg_in(k, "x", 0);
    for (int i = 0; i < MAX_PARTS; i++) arg_out(k, y_names[i], present(i, c->n_out));
    heads_shape(k, &c->in_type[0], &c->out_type[0], c->n_out, word);
}

static void merge_heads(const struct kernel_call *c, struct cuda_launches *l)
{
    int64_t word = head_word(&c->in_type[0]);
    struct cuda_launch *k =
        heads_launch(c, l, "merge_heads", &c->out_type[0], &c->in_type[0], word);
    for (int i = 0; i < 3; i++) arg_in(k, x_names[i], present(i, c->n_in));
    arg_out(k, "y", 0);
    heads_shape(k, &c->out_type[0], &c->in_type[0], c->n_in, word);
}

/* The largest word size that divides the rows of all parts. */
static int64_t parts_word(int n, const struct type *part)
{
    int64_t bytes = 0;
    for (int i = 0; i < n; i++) bytes |= type_columns(&part[i]) * dtype_size(part[i].dtype);
    return word_of(bytes);
}

static struct cuda_launch *parts_launch(struct cuda_launches *l, const char *entry,
                                        const struct type *joined, int64_t word)
{
    int64_t words = type_bytes(joined) / word, per_block = THREADS * TIMES;
    struct cuda_launch *k = launch_add(l, "parts.cu", entry, ceil_div(words, per_block), THREADS);
    launch_define(k, "WORD", word);
    return k;
}

/* Adds the arguments: the number of words of all rows, the end of each part in a row, in words, and
 * the number of words of a row. */
static void parts_shape(struct cuda_launch *k, const struct type *joined, int n,
                        const struct type *part, int64_t word)
{
    static const char *const ends[MAX_PARTS] = {"end0", "end1", "end2", "columns"};
    int64_t end = 0;
    arg_u32(k, "n", type_bytes(joined) / word);
    for (int i = 0; i < MAX_PARTS; i++) {
        if (i < n) end += type_columns(&part[i]) * dtype_size(joined->dtype) / word;
        arg_u32(k, ends[i], end);
    }
}

static void split(const struct kernel_call *c, struct cuda_launches *l)
{
    int64_t word = parts_word(c->n_out, c->out_type);
    struct cuda_launch *k = parts_launch(l, "split", &c->in_type[0], word);
    arg_in(k, "x", 0);
    for (int i = 0; i < MAX_PARTS; i++) arg_out(k, y_names[i], present(i, c->n_out));
    parts_shape(k, &c->in_type[0], c->n_out, c->out_type, word);
}

static void concat(const struct kernel_call *c, struct cuda_launches *l)
{
    int64_t word = parts_word(c->n_in, c->in_type);
    struct cuda_launch *k = parts_launch(l, "concat", &c->out_type[0], word);
    for (int i = 0; i < MAX_PARTS; i++) arg_in(k, x_names[i], present(i, c->n_in));
    arg_out(k, "y", 0);
    parts_shape(k, &c->out_type[0], c->n_in, c->in_type, word);
}

/* True if the kernels, which count words in 32 bits, can count these words. */
static bool few_words(const struct type *packed, const struct type *heads)
{
    return type_bytes(packed) / head_word(heads) < INT32_MAX;
}
static bool fits_parts(const struct kernel_call *c)
{
    bool apart = c->n_in == 1;
    const struct type *joined = apart ? &c->in_type[0] : &c->out_type[0];
    int64_t word = apart ? parts_word(c->n_out, c->out_type) : parts_word(c->n_in, c->in_type);
    return type_bytes(joined) / word < INT32_MAX;
}
static bool fits_split(const struct kernel_call *c)
{
    return few_words(&c->in_type[0], &c->out_type[0]);
}
static bool fits_merge(const struct kernel_call *c)
{
    return few_words(&c->out_type[0], &c->in_type[0]);
}
static bool fits_embed(const struct kernel_call *c)
{
    return types_are(c, DT_COUNT, "fi", "a") || types_are(c, DT_COUNT, "ai", "a");
}
static bool fits_embed_sum(const struct kernel_call *c)
{
    return types_are(c, DT_COUNT, "fifii", "a") || types_are(c, DT_COUNT, "aiaii", "a");
}
static bool fits_embed_grad(const struct kernel_call *c)
{
    return type_elements(&c->in_type[c->n_in - 2]) < INT32_MAX / 4;
}
static bool fits_embed_scan(const struct kernel_call *c)
{
    return fits_embed_grad(c) && embed_grad_scans(c);
}
static bool fits_embed_few(const struct kernel_call *c)
{
    return fits_embed_grad(c) && embed_grad_has_few_rows(c);
}
const struct cuda_row move_rows[] = {
    CUDA_ROW(SPLIT_HEADS, "cuda", "a", "aaaa", fits_split, split_heads),
    CUDA_ROW(MERGE_HEADS, "cuda", "aaa", "a", fits_merge, merge_heads),
    CUDA_ROW(SPLIT, "cuda", "aaaa", "aaaa", fits_parts, split),
    CUDA_ROW(CONCAT, "cuda", "aaaa", "aaaa", fits_parts, concat),
    CUDA_ROW(EMBED, "cuda", NULL, NULL, fits_embed, embed_launches),
    CUDA_ROW(EMBED_SUM, "cuda", NULL, NULL, fits_embed_sum, embed_sum_launches),
    CUDA_ROW(EMBED_GRAD, "scan", "ia", "f", fits_embed_scan, embed_scan_launches),
    CUDA_ROW(EMBED_GRAD, "few", "ia", "f", fits_embed_few, embed_few_launches),
    CUDA_ROW(EMBED_GRAD, "sort", "ia", "f", fits_embed_grad, embed_grad_launches),
    CUDA_ROW(EMBED_GRAD_ADD, "scan", "fia", "f", fits_embed_scan, embed_scan_launches),
    CUDA_ROW(EMBED_GRAD_ADD, "few", "fia", "f", fits_embed_few, embed_few_launches),
    CUDA_ROW(EMBED_GRAD_ADD, "sort", "fia", "f", fits_embed_grad, embed_grad_launches),
    CUDA_ROW(EMBED_GRAD_SUM, "places", "ia", "f", fits_embed_grad, embed_grad_sum_launches),
    CUDA_ROW(PICK, "cuda", "ai", "a", NULL, pick_launches),
    CUDA_ROW(PICK_GRAD, "cuda", "ia", "a", NULL, pick_grad_launches),
    CUDA_ROWS_END,
};
