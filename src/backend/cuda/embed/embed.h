/* embed.h - launches of the embedding and pick kernels, for the table in move.c. */
#ifndef BACKEND_CUDA_EMBED_EMBED_H
#define BACKEND_CUDA_EMBED_EMBED_H

#include "backend/cuda/runtime/launch.h"

void embed_launches(const struct kernel_call *c, struct cuda_launches *l);
void embed_sum_launches(const struct kernel_call *c, struct cuda_launches *l);
void embed_grad_launches(const struct kernel_call *c, struct cuda_launches *l);
void embed_grad_sum_launches(const struct kernel_call *c, struct cuda_launches *l);
/* embed_scan is for small tables and few ids; embed_grad_scans tells whether a call is such a case.
 * embed_few is for tables of few rows; embed_grad_has_few_rows tells whether a call is such a case.
 */
void embed_scan_launches(const struct kernel_call *c, struct cuda_launches *l);
bool embed_grad_scans(const struct kernel_call *c);
void embed_few_launches(const struct kernel_call *c, struct cuda_launches *l);
bool embed_grad_has_few_rows(const struct kernel_call *c);
void pick_launches(const struct kernel_call *c, struct cuda_launches *l);
void pick_grad_launches(const struct kernel_call *c, struct cuda_launches *l);

#endif
