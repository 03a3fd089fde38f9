/* workdir.h - a folder for the files of one test, and functions that damage them. */
#ifndef SUPPORT_WORKDIR_H
#define SUPPORT_WORKDIR_H

#include <stdint.h>

/* Creates a new folder below $TMPDIR, else /tmp; the name is valid until the next call. */
const char *workdir_open(void);
/* Removes the folder with its contents. */
void workdir_close(void);
/* The path of a file in the folder; it stays valid until the next workdir_open. */
const char *workdir_path(const char *name);

/* Writes a text to a file in the folder; returns its path. */
const char *workdir_text(const char *name, const char *text);
void workdir_write(const char *path, const void *bytes, int64_t n);
int64_t workdir_size(const char *path);
void workdir_truncate(const char *path, int64_t bytes);
/* Flips one bit of the byte `at`. */
void workdir_flip(const char *path, int64_t at, int bit);

#endif
