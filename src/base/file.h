/* file.h - read files, list and remove folders, and write files atomically.
 *
 * Only regular files are opened, so that no FIFO blocks and no device fills the memory. Every error
 * message names the path and the operating system's reason; file_status maps the reason to a
 * status. Calls that fail with a temporary error are tried up to 4 times in 0.2 s, here only. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/arena.h"

#include <stdio.h>

/* The status for an errno: ST_ABSENT, ST_DENIED, ST_BUSY, ST_FULL, ST_FORMAT if a file is of
 * another kind than asked for, and ST_IO for others. */
enum status file_status(int error);
/* Fails with file_status(error); the message has the path and the reason. */
enum status file_fail(const char *path, int error);

/* False only if nothing has this name; true if the check fails, since opening reports the
 * reason. */
bool file_exists(const char *path);
/* Whether a file, a folder or a dangling link of this name exists; on error *ret_has is unset. */
enum status file_has(const char *path, bool *ret_has);
/* ST_USAGE if a path begins with ~, which only a shell expands; `key` is for the message. */
enum status file_check_place(const char *key, const char *path);
/* False also for what cannot be looked at: opening it says why not. */
bool file_is_dir(const char *path);
/* Reads up to size - 1 bytes as text, without allocating; false and "" if there are none. */
bool file_peek(const char *path, char *text, int size);
/* Opens a regular file for reading; the caller closes the descriptor. */
enum status file_open(const char *path, int *ret_fd, int64_t *ret_size);
/* Reads the whole file and appends a zero byte. */
enum status file_read(const char *path, struct arena *a, char **ret_data, int64_t *ret_size);
/* The same, but ST_FORMAT, before any allocation, if the file has more than `most` bytes. */
enum status file_read_most(const char *path, int64_t most, struct arena *a, char **ret_data,
                           int64_t *ret_size);
/* Reads up to `most` bytes at a descriptor's current position; *ret_bytes is 0 at the end. */
enum status file_read_next(int fd, const char *path, void *ret, int64_t most, int64_t *ret_bytes);
/* Reads `bytes` bytes at the offset `from` of an open file; ST_FORMAT if the file is too short.
 * Files are not mapped: a disk error or a truncation by another program would kill the process. */
enum status file_read_range(int fd, const char *path, int64_t from, int64_t bytes, void *ret);
/* Opens a folder; -1 and errno if that fails. */
int file_open_folder(const char *folder);
/* Writes all bytes at a descriptor's current position. *ret_done: bytes written, also on
 * failure. */
enum status file_append(int fd, const char *path, const char *bytes, int64_t n, int64_t *ret_done);
/* Syncs the contents of an open file. */
enum status file_sync_data(int fd, const char *path);
struct file_entries {
    const char **name; /* in no order, without . and .. */
    int count;
    bool missing; /* the folder does not exist */
};
/* Reads a whole folder; a folder that cannot be read to its end is an error. */
enum status file_list(const char *folder, struct arena *a, struct file_entries *ret);
/* The user's cache folder by the XDG rules (a relative XDG_CACHE_HOME counts as unset), or NULL if
 * there is no home directory. The folder may not exist yet. */
const char *file_cache_folder(struct arena *a);

/* Creates one directory durably; ST_OK if it exists already. */
enum status file_make_dir(const char *path);
/* Creates a directory and its missing parents, durably. *ret_made: how many, also on failure. */
enum status file_make_dirs(const char *path);
enum status file_make_dirs_count(const char *path, int *ret_made);
/* The same for the folder that contains a file. */
enum status file_make_parent(const char *path);
/* Syncs a folder, or the parent folder of a path, so that a rename in it survives a crash. */
enum status file_sync_folder(const char *folder);
enum status file_sync_parent(const char *path);
/* Removes a file, or a directory (not a link to one) and its contents. ST_OK if it is missing. */
enum status file_remove(const char *path);
enum status file_remove_dir(const char *path);

enum { FILE_LONGEST = 1023, FILE_TEMPORARY = FILE_LONGEST + 32 };

/* Writes a file under a temporary name in the same folder. The commit syncs and renames the file,
 * so readers see the complete file or none. It replaces only a regular file. Use own_write
 * (base/own.h) to replace a file whose path the user chose. */
struct file_writer {
    FILE *stream; /* write to this stream, or call file_writer_add */
    /* private to file.c */
    int error; /* of the first file_writer_add that failed */
    char path[FILE_LONGEST + 1], temporary[FILE_TEMPORARY];
};
enum status file_writer_open(struct file_writer *w, const char *path);
/* Errors are reported by the commit. */
void file_writer_add(struct file_writer *w, const void *data, int64_t bytes);
/* Flushes, syncs and renames the file. On failure (for example a full disk) it is removed. */
enum status file_writer_commit(struct file_writer *w);
/* Drops the file; does nothing after a commit. */
void file_writer_discard(struct file_writer *w);
/* Writes the whole file: open, add, commit. */
enum status file_write(const char *path, const void *data, int64_t size);
/* Checks whether the file could be written now; leaves nothing behind. */
enum status file_check_writable(const char *path);

/* A temporary name for a file that will become `path`: NAME.0123456789ab.tmp, with random
 * digits. */
enum status file_temporary_name(const char *path, char ret[FILE_TEMPORARY]);
/* The length of NAME if `entry` is a temporary name, else 0. */
int file_temporary_of(const char *entry);

#endif
