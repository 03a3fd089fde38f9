/* pass.h - graph to graph: THE table of passes, in running order.
 *
 * A pass visits the nodes of `in` in order and appends a replacement or a copy of each to `out`;
 * `map` gives the value of `out` for each value of `in`. A pattern is matched at its last node;
 * nodes that a replacement leaves unused are dead code. graph_verify runs after each pass. */
#ifndef PASS_PASS_H
#define PASS_PASS_H

#include "graph/graph.h"

enum pass_rung { RUNG_PRIMITIVE, RUNG_OP, RUNG_FULL };
/* Regions whose values the backward pass recomputes instead of keeping them (recompute.c). */
enum pass_region { REGION_NONE, REGION_GELU, REGION_BLOCK };

/* When gradients are summed over the ranks. NONE: after the backward pass, one parameter after
 * another. PARAMETER: each gradient as soon as it is written. BUCKET: each bucket as soon as all of
 * it is written. */
enum pass_overlap { SHARD_NONE, SHARD_PARAMETER, SHARD_BUCKET };

/* ZeRO stage 3: a rank stores only one shard of each unit of the range. The shard of the unit that
 * begins at element `first` begins at first / ranks of the rank's weights and gradients. Units have
 * a multiple of `ranks` elements. */
struct pass_units {
    int n;
    const int64_t *first; /* n + 1: the first element of each unit, and the end of the last */
    int rank;
    bool accumulate; /* gradients are added to those of earlier micro-steps */
};

struct pass_options {
    enum pass_rung rung;
    enum pass_region region;
    int region_blocks;  /* for REGION_BLOCK: blocks per region; 0 means 1 */
    bool flash;         /* keep attention as one operator; false: expand it (T x T matrices) */
    enum dtype compute; /* DT_F32; DT_BF16: mixed precision; DT_F64: for gradient checks */
    /* DT_E5M2 or DT_E4M3: matmuls of transformer blocks are 8-bit and gradients are quantized to
     * this type; requires compute = DT_BF16. DT_F32: no 8-bit matmuls. */
    enum dtype float8_gradients;
    struct numerics numerics; /* tf32 applies to operators with f32 operands only */
    int ranks;                /* ranks that sum the gradients of this graph; 0 and 1: no sums */
    enum pass_overlap overlap;
    int64_t bucket_elements;            /* the range of the gradients is cut at multiples of this */
    enum dtype reduce;                  /* DT_F32; DT_BF16: sums are in bf16, in STORAGE_REDUCED */
    bool zero;                          /* each rank gets only the sums of its own shards */
    struct pass_units units;            /* n = 0: each rank has all weights and gradients */
    const struct pass_packing *packing; /* NULL: weights are not packed */
    const struct pass_kernels *kernels; /* NULL: no fusion that is faster only with some kernels */
};

/* For fused operators that are faster only with some kernels. */
struct pass_kernels {
    /* True if the target has a kernel for the node and types that is faster than the expansion. */
    bool (*is_faster)(const void *who, const struct node *n, const struct type *in,
                      const struct type *out);
    const void *who;
};

/* Weights with packed copies for matmuls of `rows` rows. The matrix that begins at element `weight`
 * of its range and has `elements` elements has two copies in STORAGE_PACKED: the copy at at[0] is
 * for matmuls that do not transpose it, the copy at at[1] for matmuls that do. */
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

/* Runs one pass and verifies its result, which lives in the arena of `in`. */
enum status pass_run(const struct pass *p, const struct graph *in, struct graph *ret_out,
                     const struct pass_options *o);
/* Runs the passes with this pass_time and replaces `g`; stops after the pass `last` unless NULL. */
enum status passes_run(enum pass_time time, struct graph *g, const struct pass_options *o,
                       const char *last);

/* For passes: pass_copy_node copies node `id` and maps its outputs; pass_finish maps graph
 * outputs. */
void pass_copy_node(const struct graph *in, int id, struct graph *out, value *map);
void pass_finish(const struct graph *in, struct graph *out, const value *map);
/* For passes: true if o->kernels has a kernel for a node with these inputs in `g` that is faster
 * than the node's expansion. Call it before appending the node. */
bool pass_kernel_is_faster(const struct pass_options *o, const struct graph *g, enum op op,
                           const union attr *attr, int n_in, const value *in,
                           const struct type *given);
/* For passes: whether a node is a leaf in this storage, and whether a node of `g` writes a gradient
 * (STORAGE_GRADIENTS). */
bool pass_is_leaf_of(const struct node *n, enum storage storage);
bool pass_writes_gradient(const struct graph *g, const struct node *n);
/* For passes: new nodes of `out` get the phase, layer, region and scope of node `n`. */
void pass_inherit_place(struct graph *out, const struct node *n);

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
/* The part of the pass `shard` for ZeRO stage 3 (pass_options.units). */
enum status pass_units(const struct graph *in, struct graph *out, const struct pass_options *o);
enum status pass_dead_code(const struct graph *in, struct graph *out, const struct pass_options *o);

#endif
