/* attention_graph.h - the graphs that `bench attention` times; private to bench/. */
#ifndef BENCH_ATTENTION_GRAPH_H
#define BENCH_ATTENTION_GRAPH_H

#include "bench/bench_attention.h"

struct graph;
struct target;

enum dtype attention_dtype(enum machine_precision p);
/* Of q, k and v: (H + 2 KV) D. */
int64_t attention_packed_columns(const struct attention_cell *c);
/* Attention of the cell's variant and shape, forward and backward. Inputs "qkv" (B,T,(H+2KV)D),
 * "dy" (B,T,HD) and "step"; outputs "y" and "dqkv". */
enum status attention_graph(const struct attention_cell *c, struct graph *g, struct arena *a);
/* Of qkv and dy. */
int64_t attention_input_bytes(const struct attention_cell *c);

/* "a batch of 5 is the largest that fits", in `room` bytes at this T with `copies` of the inputs;
 * "not even one sequence fits; T 512 would" (the largest of T / 2, T / 4 ...); "not even one
 * sequence of one token fits". Makes the plans of several shapes. */
const char *attention_fit_words(const struct attention_cell *c, const struct target *target,
                                int copies, int64_t room, struct arena *a);

#endif
