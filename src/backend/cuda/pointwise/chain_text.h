/* chain_text.h - the text that is written for a chain of pointwise operators (graph/chain.h). Private to backend/cuda. */
#ifndef BACKEND_CUDA_POINTWISE_CHAIN_TEXT_H
#define BACKEND_CUDA_POINTWISE_CHAIN_TEXT_H

#include "backend/kernel.h"

struct str;

/* A thread takes so many elements, in vectors of CHAIN_NARROW where one of the types is bf16, else of CHAIN_WIDE. */
enum { CHAIN_TAKEN = 16, CHAIN_NARROW = 8, CHAIN_WIDE = 4 };

/* The kernel `chain`. Parameters: of each input its address, and, where it is repeated by rows or columns, a period; seed,
 * site and threshold of each dropout; of each output its address; the number of elements, unless it is one. */
void chain_write(const struct kernel_call *c, struct str *s);
int chain_vector(const struct kernel_call *c);
/* True if input i has a period. */
bool chain_has_period(const struct kernel_call *c, int i);

#endif
