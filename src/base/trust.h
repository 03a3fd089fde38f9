/* trust.h - files and folders that the program believes, because only its user can have written
 * them: compiled kernels, which it runs, and tables of measurements. OpenSSH's rule: the file and
 * every folder above it belong to the user or to root, and neither group nor others can write them,
 * unless a folder has the sticky bit, as /tmp has. */
#ifndef BASE_TRUST_H
#define BASE_TRUST_H

#include "base/arena.h"

/* ST_UNSUPPORTED: another user owns `path` or a folder above it, or can write it; the message says
 * which and what to do. Symbolic links are resolved. Of a missing path the folders are checked. */
enum status trust_check(const char *path);
/* The same; prints the message as a warning, unless *warned, and sets it. */
bool trust_path(const char *path, bool *warned);
/* Creates a folder with its missing parents, for this user alone, and checks it. *ret_real is its
 * path without links, which is the one to use from then on. Not to be called by several threads. */
enum status trust_folder(const char *path, struct arena *a, const char **ret_real);
/* The same for the folder of a file, and checks the file if it exists. */
enum status trust_parent(const char *path);
/* For a file in such a folder, just written: only its user may write it, whatever the umask. */
enum status trust_private(const char *path);

#endif
