/* environment.h - the machine and software of a run, stored in env.json. */
#ifndef ENGINE_ENVIRONMENT_H
#define ENGINE_ENVIRONMENT_H

#include "base/file.h"

enum { ENVIRONMENT_LIBRARIES_MAX = 16 };

struct environment {
    const char *version, *commit, *mode; /* of this program; set by the caller */
    const char *compiler;                /* "gcc 12.2.0" */
    const char *cpu;                     /* "Intel(R) Xeon(R) ..." */
    const char *os, *kernel, *host;
    int64_t memory_bytes;
    int cores;        /* logical processors of the machine */
    int cores_usable; /* logical processors that this process may run on */
    int threads;      /* threads that the run uses, set by the caller; 0: not yet known */
    struct environment_library {
        const char *name, *version;
    } library[ENVIRONMENT_LIBRARIES_MAX];
    int libraries;
    /* Set by the caller: the widest instruction set, and that of the matmul library or NULL. */
    const char *isa, *isa_library;
    const char *device; /* "NVIDIA H200", set by the caller; NULL: CPU only */
    const char *driver; /* of the device; NULL: none */
    char date[32];      /* "2026-11-21T08:22:13Z" */
};

/* Queries the system; unknown fields are "unknown" or 0. Strings live in the arena. */
void environment_gather(struct environment *e, struct arena *a);
void environment_add_library(struct environment *e, const char *name, const char *version);
/* Writes env.json (docs/FORMATS.md). */
enum status environment_write(const struct environment *e, const char *path);

#endif
