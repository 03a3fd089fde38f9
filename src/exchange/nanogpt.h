/* nanogpt.h - what reading and writing nanoGPT's ckpt.pt share. */
#ifndef EXCHANGE_NANOGPT_H
#define EXCHANGE_NANOGPT_H

#include "exchange/exchange.h"

/* Whether nn.Linear keeps this parameter as (out,in). */
bool nanogpt_is_transposed(const char *name);
/* The numbers of parameters in its optimizer's order: those with weight decay first. */
int *nanogpt_order(const struct model *m, int *ret_decayed, struct arena *a);
/* The row's `write`. Without moments the optimizer has no state yet. */
enum status nanogpt_write(const struct exchange_source *s, const char *path, struct arena *a);

#endif
