/* logits.h - the logits of a model for one sequence of tokens, to compare with other programs. */
#ifndef TRAIN_LOGITS_H
#define TRAIN_LOGITS_H

#include "engine/sequence.h"

/* Writes the logits of every position as a NumPy file (.npy): float32 (n,V), without padding
 * columns. The engine must have GRAPH_LOGITS; ids are below its vocabulary, and n is at most its
 * block_size. */
enum status logits_write(struct engine *e, const int32_t *ids, int64_t n, const char *path,
                         struct arena *a);

#endif
