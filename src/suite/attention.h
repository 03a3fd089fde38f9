/* attention.h - suites of attention: `block_size` is the length and `n_embd` the head size. */
#ifndef SUITE_ATTENTION_H
#define SUITE_ATTENTION_H

#include "suite/suite.h"

enum status suite_run_attention(const struct suite_request *r, struct sheet *ret, struct arena *a);
enum status suite_run_flash(const struct suite_request *r, struct sheet *ret, struct arena *a);

#endif
