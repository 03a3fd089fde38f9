/* scratch.h - a folder for the files of one test, and ways to damage them. */
#ifndef SUPPORT_SCRATCH_H
#define SUPPORT_SCRATCH_H

#include <stdint.h>

/* Makes a fresh folder below $TMPDIR, else /tmp; the name is valid until the next call. */
const char *scratch_open(void);
/* Removes it with all that is in it. */
void scratch_close(void);
/* The path of a file in it; it stays valid until the next scratch_open. */
const char *scratch_path(const char *name);

void scratch_write(const char *path, const void *bytes, int64_t n);
int64_t scratch_size(const char *path);
void scratch_truncate(const char *path, int64_t bytes);
/* Flips one bit of the byte `at`. */
void scratch_flip(const char *path, int64_t at, int bit);

#endif
