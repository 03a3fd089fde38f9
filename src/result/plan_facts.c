#include "result/plan_facts.h"

/* clang-format off */
#define S struct facts
RECORD(memory, F(WHOLE, "weights", weights), F(WHOLE, "gradients", gradients),
       F(WHOLE, "optimizer", optimizer), F(WHOLE, "copies", copies), F(WHOLE, "inputs", inputs),
       F(WHOLE, "activations", activations), F(WHOLE, "total", total));
RECORD(plan, F(WHOLE, "parameters", parameters), F(WHOLE, "parameters_all", parameters_all),
       F(WHOLE, "sequences_per_step", sequences), F(WHOLE, "tokens_per_step", tokens),
       F(WHOLE, "kernels_per_step", kernels), F(REAL, "flops_per_step", flops),
       F(REAL, "bytes_per_step", bytes), CHARS("plan_sha256", work),
       PART("memory", memory));
#undef S
/* clang-format on */

const struct record *const facts_record = &plan_record, *const facts_memory_record = &memory_record;
