/* onednn2.h - the functions of oneDNN 3 that Strobe uses, implemented with oneDNN 2, where a memory
 * descriptor is a struct of the caller. Include it instead of oneDNN's header; only in matmul/. */
#ifndef BACKEND_CPU_MATMUL_ONEDNN2_H
#define BACKEND_CPU_MATMUL_ONEDNN2_H

#include <oneapi/dnnl/dnnl.h>

#if DNNL_VERSION_MAJOR == 2

#include "base/heap.h"

#include <stdlib.h>

typedef dnnl_memory_desc_t onednn2_desc;
typedef onednn2_desc *onednn2_desc_pointer;
typedef const onednn2_desc *const_dnnl_memory_desc_t;
#define dnnl_memory_desc_t   onednn2_desc_pointer
#define dnnl_cpu_isa_default dnnl_cpu_isa_all

static inline dnnl_status_t dnnl_memory_desc_create_with_strides(dnnl_memory_desc_t *ret, int n,
                                                                 const dnnl_dims_t dims,
                                                                 dnnl_data_type_t type,
                                                                 const dnnl_dims_t strides)
{
    *ret = HEAP_NEW(onednn2_desc, 1);
    return dnnl_memory_desc_init_by_strides(*ret, n, dims, type, strides);
}

static inline dnnl_status_t dnnl_memory_desc_create_with_tag(dnnl_memory_desc_t *ret, int n,
                                                             const dnnl_dims_t dims,
                                                             dnnl_data_type_t type,
                                                             dnnl_format_tag_t tag)
{
    *ret = HEAP_NEW(onednn2_desc, 1);
    return dnnl_memory_desc_init_by_tag(*ret, n, dims, type, tag);
}

static inline void dnnl_memory_desc_destroy(dnnl_memory_desc_t desc)
{
    free(desc);
}

static inline dnnl_status_t
dnnl_matmul_primitive_desc_create(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                  const_dnnl_memory_desc_t a, const_dnnl_memory_desc_t b,
                                  const_dnnl_memory_desc_t bias, const_dnnl_memory_desc_t c,
                                  const_dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t matmul;
    dnnl_status_t st = dnnl_matmul_desc_init(&matmul, a, b, bias, c);
    return st == dnnl_success ? dnnl_primitive_desc_create(ret, &matmul, attr, engine, NULL) : st;
}

#endif
#endif
