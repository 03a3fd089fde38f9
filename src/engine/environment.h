/* environment.h - what a run ran on: env.json, so that its numbers can be read years later. */
#ifndef ENGINE_ENVIRONMENT_H
#define ENGINE_ENVIRONMENT_H

#include "base/arena.h"

enum { ENVIRONMENT_LIBRARIES_MAX = 16 };

struct environment {
    const char *version, *commit, *mode; /* of this program: given by the caller */
    const char *compiler;                /* "gcc 12.2.0" */
    const char *cpu;                     /* "Intel(R) Xeon(R) ..." */
    const char *os, *kernel, *host;
    int64_t memory_bytes;
    int cores;        /* logical processors of the machine */
    int cores_usable; /* that this process may run on */
    int threads;      /* that the run uses: given by the caller; 0: not yet known */
    struct environment_library {
        const char *name, *version;
    } library[ENVIRONMENT_LIBRARIES_MAX];
    int libraries;
    const char *isa; /* the widest instruction set in use: given by the caller */
    const char
        *isa_library;   /* what the library of products uses: given by the caller; NULL: none */
    const char *device; /* "NVIDIA H200": given by the caller; NULL: the CPU alone */
    const char *driver; /* of the device; NULL: none */
    char date[32];      /* "2026-11-21T08:22:13Z" */
};

/* Asks the system; what it does not tell is "unknown" or 0. Texts live in the arena. */
void environment_gather(struct environment *e, struct arena *a);
/* One more library, as a backend knows of it. */
void environment_add_library(struct environment *e, const char *name, const char *version);
/* docs/FORMATS.md has the fields. */
enum status environment_write(const struct environment *e, const char *path);

#endif
