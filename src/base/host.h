/* host.h - the machine that the program runs on. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include "base/arena.h"

struct host {
    const char *name;     /* of the machine in its network */
    const char *system;   /* "Linux 6.1.0 x86_64" */
    const char *cpu;      /* "AMD EPYC 9534 64-Core Processor"; "unknown" where nobody says */
    const char *isa;      /* what matters here: "avx2 avx512 avx512_bf16 amx_bf16"; may be empty */
    int64_t processors;   /* online */
    int64_t threads;      /* as many as this process may use */
    int64_t memory_bytes; /* of the machine */
    int64_t memory_free_bytes;
};

void host_read(struct host *h, struct arena *a);

#endif
