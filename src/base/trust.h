/* trust.h - trusted files: those that only their user can have written, such as compiled kernels,
 * which the program runs, and tables of measurements. OpenSSH's rule: the file and every folder
 * above it belong to the user or to root, and neither group nor others can write them, unless a
 * folder has the sticky bit, as /tmp has.
 *
 * Symbolic links are resolved before the check, and *ret_real is the path without them. Open that
 * one: a link in the other could have been changed since, as not every folder of it was checked.
 * The file itself may not be a link. */
#ifndef BASE_TRUST_H
#define BASE_TRUST_H

#include "base/arena.h"

struct json_t;

/* ST_UNSUPPORTED: it is a link, or another user owns it or a folder above it or can write one; the
 * message says which and what to do. Of a missing path the folders are checked. */
enum status trust_check(const char *path, struct arena *a, const char **ret_real);
/* The same; prints the message as a warning, unless *warned, and sets it. */
bool trust_path(const char *path, bool *warned, struct arena *a, const char **ret_real);
/* Creates a folder with its missing parents, for this user alone, and checks it. Not to be called
 * by several threads. */
enum status trust_folder(const char *path, struct arena *a, const char **ret_real);
/* The same for the folder of a file, and checks the file if it exists. */
enum status trust_parent(const char *path, struct arena *a, const char **ret_real);
/* As json_write (base/json.h), for a file that only its user may read or write, from the moment it
 * exists and whatever the umask. Not to be called by several threads. */
enum status trust_write_json(struct json_t *root, size_t flags, const char *path);

#endif
