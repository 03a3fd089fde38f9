/* scratch.h - a directory of a test's own, and what was said on stderr. */
#ifndef SUPPORT_SCRATCH_H
#define SUPPORT_SCRATCH_H

/* A new empty directory; the path lives until the next call. scratch_remove deletes the last one. */
const char *scratch_make(void);
void scratch_remove(void);
/* The path of a file in it; four may be in use at a time. */
const char *scratch_path(const char *name);
/* Writes text to a file in it and returns its path. */
const char *scratch_write(const char *name, const char *text);

/* From here on stderr goes to a file; scratch_stderr_end puts it back and returns what was said. */
void scratch_stderr_begin(void);
const char *scratch_stderr_end(void);

#endif
