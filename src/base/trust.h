/* trust.h - trusted files: files that only the user can have written, such as compiled kernels,
 * which the program runs, and tables of measurements. OpenSSH's rule: the file and every folder
 * above it belong to the user or to root, and neither group nor others can write them, unless a
 * folder has the sticky bit, as /tmp has.
 *
 * Symbolic links are resolved before the check, except that the file itself may not be a link. Open
 * *ret_real, the path without links: a link in the original path may have changed since. */
#ifndef BASE_TRUST_H
#define BASE_TRUST_H

#include "base/arena.h"

struct json_t;

/* ST_UNSUPPORTED if `path` is a link, or if another user owns or can write it or a folder above it;
 * the message says which one and what to do. If `path` is missing, its folders are checked. */
enum status trust_check(const char *path, struct arena *a, const char **ret_real);
/* Whether trust_check succeeds. Prints a failure as a warning, unless *warned, and sets *warned. */
bool trust_path(const char *path, bool *warned, struct arena *a, const char **ret_real);
/* Creates a folder with its missing parents, for this user alone, and checks it. Not to be called
 * by several threads. */
enum status trust_folder(const char *path, struct arena *a, const char **ret_real);
/* The same for the folder that contains a file; also checks the file if it exists. */
enum status trust_parent(const char *path, struct arena *a, const char **ret_real);
/* Like json_write (base/json.h), but creates the file readable and writable by its user only,
 * whatever the umask. Not to be called by several threads. */
enum status trust_write_json(struct json_t *root, size_t flags, const char *path);

#endif
