/* pass.h - graph to graph: THE table of passes, in running order.
 *
 * A pass walks `in` in order and appends a replacement or a copy of each node to `out`; `map` gives
 * the new value of each old value. A pattern is matched at its last node; nodes it leaves unused
 * are removed as dead code. graph_verify runs after each pass. */
#ifndef PASS_PASS_H
#define PASS_PASS_H

#include "graph/graph.h"

enum pass_rung { RUNG_PRIMITIVE, RUNG_OP, RUNG_FULL };
/* What the backward pass recomputes instead of keeping. */
enum pass_region { REGION_NONE, REGION_GELU, REGION_BLOCK };

/* When gradients are summed over the ranks: after the backward pass, one parameter after another;
 * each when it is written; each bucket when it is written. */
enum pass_overlap { SHARD_NONE, SHARD_PARAMETER, SHARD_BUCKET };

struct pass_options {
    enum pass_rung rung;
    enum pass_region region;
    int region_blocks;  /* for REGION_BLOCK: blocks per region; 0 means 1 */
    bool flash;         /* keep attention as one operator; else expand it into T x T matrices */
    enum dtype compute; /* DT_F32; DT_BF16: mixed precision; DT_F64: for gradient checks */
    /* Matmuls of the blocks run in 8 bits, with gradients quantised to DT_E5M2 or DT_E4M3; DT_F32:
     * disabled. Requires compute = DT_BF16. */
    enum dtype float8_gradients;
    struct numerics numerics; /* tf32 applies to operators with f32 operands only */
    int ranks;                /* that sum the gradients of this graph; 0 and 1: none */
    enum pass_overlap overlap;
    int64_t bucket_elements;            /* the range of the gradients is cut at multiples of this */
    enum dtype reduce; /* DT_F32; DT_BF16: sums are in bf16, in STORAGE_REDUCED */
    bool zero;                          /* a rank gets the sum in its shards alone */
    const struct pass_packing *packing; /* NULL: weights are not packed */
    const struct pass_kernels *kernels; /* NULL: no fusion that is faster with some kernels only */
};

/* Properties of the target's kernels, for fused operators whose expansion is often as fast. */
struct pass_kernels {
    /* True if the target has a kernel for the node and types that is faster than the expansion. */
    bool (*gain)(const void *who, const struct node *n, const struct type *in,
                 const struct type *out);
    const void *who;
};

/* Weights with a packed copy for matmuls of `rows` rows: the matrix of `elements` elements at
 * `weight` (in its range) is at at[tb] of STORAGE_PACKED, for B as it is and transposed. */
struct pass_packing {
    int64_t rows;
    int n;
    const struct packed_weight {
        int64_t weight, elements, at[2];
    } * weight;
};

enum pass_time { BEFORE_GRADIENT, AFTER_GRADIENT };

struct pass {
    const char *name;
    enum pass_time time;
    enum status (*run)(const struct graph *in, struct graph *out, const struct pass_options *o);
    const char *help;
};

/* Ends with name == NULL. */
extern const struct pass passes[];
const struct pass *pass_find(const char *name);

/* Runs one pass and verifies its result, which lives in in's arena. */
enum status pass_run(const struct pass *p, const struct graph *in, struct graph *ret_out,
                     const struct pass_options *o);
/* Runs the passes of that time, replacing `g`; stops after the one named `last` unless NULL. */
enum status passes_run(enum pass_time time, struct graph *g, const struct pass_options *o,
                       const char *last);

/* For passes: copies node `id` and maps its outputs; at the end maps those of the graph. */
void pass_keep(const struct graph *in, int id, struct graph *out, value *map);
void pass_finish(const struct graph *in, struct graph *out, const value *map);
/* For passes: true if the kernels gain by such a node of `g`; call it before appending the node. */
bool pass_gains(const struct pass_options *o, const struct graph *g, enum op op,
                const union attr *attr, int n_in, const value *in, const struct type *given);
/* For passes: new nodes of `out` get the phase, layer, region and scope of node `n`. */
void pass_mark(struct graph *out, const struct node *n);

enum status pass_regions(const struct graph *in, struct graph *out, const struct pass_options *o);
enum status pass_join(const struct graph *in, struct graph *out, const struct pass_options *o);
enum status pass_expand(const struct graph *in, struct graph *out, const struct pass_options *o);
enum status pass_precision(const struct graph *in, struct graph *out, const struct pass_options *o);
enum status pass_recompute(const struct graph *in, struct graph *out, const struct pass_options *o);
enum status pass_numerics(const struct graph *in, struct graph *out, const struct pass_options *o);
enum status pass_float8(const struct graph *in, struct graph *out, const struct pass_options *o);
enum status pass_pack(const struct graph *in, struct graph *out, const struct pass_options *o);
enum status pass_fuse(const struct graph *in, struct graph *out, const struct pass_options *o);
enum status pass_chain(const struct graph *in, struct graph *out, const struct pass_options *o);
enum status pass_shard(const struct graph *in, struct graph *out, const struct pass_options *o);
enum status pass_dead_code(const struct graph *in, struct graph *out, const struct pass_options *o);

#endif
