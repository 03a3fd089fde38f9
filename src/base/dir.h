/* dir.h - an open folder, and files named from its descriptor instead of by path.
 *
 * A folder that is renamed while it is in use keeps its descriptor. So nothing is ever written into
 * another folder that takes its name. Functions that end in _at take a folder and a name in it,
 * which may have slashes; NULL is the current folder, so the name is then an ordinary path. After a
 * failure with ST_IO, errno holds the reason. */
#ifndef BASE_DIR_H
#define BASE_DIR_H

#include "base/arena.h"

/* Of a folder; of a folder, a slash and the longest name that a file_writer takes or makes. */
enum { DIR_LONGEST = 900, DIR_NAME = 2048 };

struct dir {
    int fd;                     /* -1: files are reached by path */
    char path[DIR_LONGEST + 1]; /* as the user named it, for messages */
};

/* Opens an existing folder; the caller closes it. */
enum status dir_open(struct dir *d, const char *path);
/* A folder that need not exist, and whose files are reached by path. Needs no dir_close. */
enum status dir_by_path(struct dir *d, const char *path);
/* No effect if it is closed already. */
void dir_close(struct dir *d);

/* The path of a file, for a message; `buffer` is used if there is a folder. */
const char *dir_path(const struct dir *at, const char *name, char buffer[DIR_NAME]);
/* What openat and the like take: a descriptor and a name. */
int dir_fd(const struct dir *at);
const char *dir_name(const struct dir *at, const char *name, char buffer[DIR_NAME]);
/* Fails with ST_IO, the path and the reason; errno stays. */
enum status dir_fail(const struct dir *at, const char *name, int error);

/* Whether the folder's path still leads to it. ST_IO says where it was moved, or that it was
 * deleted. */
enum status dir_check(const struct dir *d);
/* The path on which the folder is now; false if it was deleted or that is unknown. */
bool dir_now(const struct dir *d, char *ret_path, int size);

/* Whether a file, a folder or a dangling link of this name exists. An error is not an answer: only
 * a missing file is one. */
enum status dir_has(const struct dir *at, const char *name, bool *ret_has);
struct dir_entries {
    const char **name; /* in no order, without . and .. */
    int count;
    bool missing; /* the folder does not exist */
};
/* Reads a whole folder; a folder that cannot be read to its end is an error. */
enum status dir_list(const struct dir *at, const char *name, struct arena *a,
                     struct dir_entries *ret);
/* Creates one folder durably; one that exists is ST_OK. */
enum status dir_make(const struct dir *at, const char *name);
/* Removes a folder and its contents. A missing folder is ST_OK. */
enum status dir_remove(const struct dir *at, const char *name);
/* Syncs a folder, or the one that holds `name`, so that a rename in it survives a crash. */
enum status dir_sync(const struct dir *at, const char *name);
enum status dir_sync_parent(const struct dir *at, const char *name);

#endif
