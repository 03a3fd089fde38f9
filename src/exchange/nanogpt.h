/* nanogpt.h - functions for reading and writing nanoGPT's ckpt.pt. */
#ifndef EXCHANGE_NANOGPT_H
#define EXCHANGE_NANOGPT_H

#include "exchange/exchange.h"

/* Whether this parameter is the weight of an nn.Linear in a block of nanoGPT, which stores it as
 * (out,in), the transpose of ours. */
bool nanogpt_is_transposed(const char *name);
/* The indices of the parameters in the order of nanoGPT's optimizer: the *ret_decayed parameters
 * with weight decay come first. */
int *nanogpt_order(const struct model *m, int *ret_decayed, struct arena *a);
/* Writes a ckpt.pt. Without moments, the optimizer's state in the file is empty. */
enum status nanogpt_write(const struct exchange_source *s, const char *path, struct arena *a);

#endif
