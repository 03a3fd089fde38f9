/* device_facts.h - properties of a machine's GPUs, their driver and libraries, for struct
 * backend. */
#ifndef BACKEND_CUDA_RUNTIME_FACTS_H
#define BACKEND_CUDA_RUNTIME_FACTS_H

#include "backend/backend.h"

/* The number of GPUs that the driver reports; 0 without a driver. */
int cuda_device_count(void);
enum status cuda_target(int number, struct target *ret);
enum status cuda_describe(int number, struct device_facts *ret);
int64_t cuda_free_memory(int number);
bool cuda_library(int i, struct device_library *ret);
void cuda_trace_library(struct device_library *ret);

#endif
