/* file.h - read files, and write files atomically.
 *
 * Only regular files are opened: a FIFO or a device neither blocks nor fills the memory. Every
 * error message names the path and the operating system's reason. Functions that end in _at take a
 * folder and a name in it (base/dir.h); the others take a path. After a failure with ST_IO, errno
 * holds the reason. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/dir.h"

#include <stdio.h>

/* False only if there is none: what cannot be looked at may exist, and opening it says why not. */
bool file_exists(const char *path);
/* Refuses a path that begins with ~, which only a shell expands (ST_USAGE); `key` is for the
 * message. */
enum status file_check_place(const char *key, const char *path);
/* If false, errno holds the reason: ENOTDIR if it is something else. */
bool file_is_dir(const char *path);
/* Up to size - 1 bytes as text in one read, without allocating; false and "" if there are none. */
bool file_peek(const char *path, char *text, int size);
/* Opens a regular file for reading; the caller closes the descriptor. */
enum status file_open_at(const struct dir *at, const char *name, int *ret_fd, int64_t *ret_size);
/* Reads the whole file and appends a zero byte. */
enum status file_read(const char *path, struct arena *a, char **ret_data, int64_t *ret_size);
enum status file_read_at(const struct dir *at, const char *name, struct arena *a, char **ret_data,
                         int64_t *ret_size);
/* The same; ST_FORMAT if the file has more than `most` bytes, before memory is taken. */
enum status file_read_most_at(const struct dir *at, const char *name, int64_t most, struct arena *a,
                              char **ret_data, int64_t *ret_size);
/* Reads `bytes` bytes at the offset `from` of an open file; ST_FORMAT if it ends before. `path` is
 * for the message. Files are not mapped: an error of the disk, or a file that another program cuts,
 * would end the process. */
enum status file_read_range(int fd, const char *path, int64_t from, int64_t bytes, void *ret);
/* The user's cache folder by the XDG rules (a relative XDG_CACHE_HOME counts as unset), or NULL if
 * there is no home directory. The folder may not exist yet. */
const char *file_cache_folder(struct arena *a);
/* Creates a directory and its missing parents, durably. `ret_made`: how many, also if it fails. */
enum status file_make_dirs(const char *path);
enum status file_make_dirs_count(const char *path, int *ret_made);
/* The same for the folder of a file. */
enum status file_make_parent(const char *path);
/* Removes a directory and its contents. A missing directory is ST_OK. */
enum status file_remove_dir(const char *path);
/* Removes a file. A missing file is ST_OK. */
enum status file_remove_at(const struct dir *at, const char *name);

enum { FILE_LONGEST = 1023, FILE_TEMPORARY = FILE_LONGEST + 32 };

/* Writes a file that has no name yet; commit syncs it and gives it the name, so readers see the
 * complete file or none. On file systems without nameless files it has a private name until then.
 * Where `path` has a file already, it is replaced; one that is not a regular file is ST_IO. Replace
 * a file whose path the user chose by own_write only (base/own.h). */
struct file_writer {
    FILE *stream; /* write here */
    /* private to file.c */
    const struct dir *at;
    char path[FILE_LONGEST + 1], temporary[FILE_TEMPORARY];
};
enum status file_writer_open(struct file_writer *w, const char *path);
/* The folder must outlive the writer. */
enum status file_writer_open_at(struct file_writer *w, const struct dir *at, const char *name);
/* Flushes, syncs and names the file; on failure (for example a full disk) nothing is left of it. */
enum status file_writer_commit(struct file_writer *w);
void file_writer_discard(struct file_writer *w);
/* Opens, writes and commits. */
enum status file_write(const char *path, const void *data, int64_t size);
enum status file_write_at(const struct dir *at, const char *name, const void *data, int64_t size);
/* Checks whether the file could be written now; leaves nothing behind. */
enum status file_check_writable(const char *path);

/* A private name for what will become `name`: NAME.0123456789ab.tmp. No one can guess it. */
enum status file_temporary_name(const char *name, char ret[FILE_TEMPORARY]);
/* The length of NAME if `entry` is such a name, else 0. */
int file_temporary_of(const char *entry);
/* Whether this process has the lock on an open file now, or the file system has no locks. */
bool file_lock(int fd);
/* The same, and `name` still leads to this file: no one removed it as a leftover before. */
bool file_lock_named(int fd, const struct dir *at, const char *name);
/* Removes a file or folder of such a name unless a living process is writing it, or it is gone. A
 * failure is only a warning. */
void file_remove_temporary_at(const struct dir *at, const char *name);

#endif
