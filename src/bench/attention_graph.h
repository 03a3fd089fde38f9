/* attention_graph.h - the graphs that `bench attention` times; private to bench/. */
#ifndef BENCH_ATTENTION_GRAPH_H
#define BENCH_ATTENTION_GRAPH_H

#include "bench/bench_attention.h"

struct graph;
struct target;

enum dtype attention_dtype(enum machine_precision p);
/* The number of columns of packed q, k, v: (H + 2 KV) D. */
int64_t attention_packed_columns(const struct attention_cell *c);
/* Builds attention of the cell's variant and shape, forward and backward. The inputs are "qkv"
 * (B,T,(H+2KV)D), "dy" (B,T,HD) and "step"; the outputs are "y" and "dqkv". */
enum status attention_graph(const struct attention_cell *c, struct graph *g, struct arena *a);
/* The bytes of the inputs "qkv" and "dy" together. */
int64_t attention_input_bytes(const struct attention_cell *c);

/* Says which shape fits in `memory_limit` bytes together with `copies` copies of the inputs. The
 * texts: "a batch of 5 is the largest that fits" (at this T), "not even one sequence fits; T 512
 * would" (the largest of T / 2, T / 4 ... that fits), or "not even one sequence of one token fits".
 * Builds plans for several shapes. */
const char *attention_fit_words(const struct attention_cell *c, const struct target *target,
                                int copies, int64_t memory_limit, struct arena *a);

#endif
