/* attention.h - suites of attention alone; `block_size` and `n_embd` of a request are lengths and columns of the head. */
#ifndef SUITE_ATTENTION_H
#define SUITE_ATTENTION_H

#include "suite/suite.h"

enum status suite_run_attention(const struct suite *s, const struct suite_request *r,
                                struct sheet *ret, struct arena *a);
enum status suite_run_flash(const struct suite *s, const struct suite_request *r, struct sheet *ret,
                            struct arena *a);

#endif
