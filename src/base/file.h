/* file.h - read files, list and remove folders, and write files atomically.
 *
 * Only regular files are opened: a FIFO or a device neither blocks nor fills the memory. Every
 * error message names the path and the operating system's reason, and its status says what the
 * reason means (file_status). A call whose error may pass is repeated here, up to 4 times in 0.2 s,
 * and nowhere else. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/arena.h"

#include <stdio.h>

/* What an errno means: ST_ABSENT, ST_DENIED, ST_BUSY, ST_FULL, ST_FORMAT if a file is of another
 * kind than asked for, and ST_IO for all else. */
enum status file_status(int error);
/* Fails with that, the path and the reason. */
enum status file_fail(const char *path, int error);

/* False only if there is none: what cannot be looked at may exist, and opening it says why not. */
bool file_exists(const char *path);
/* Whether a file, a folder or a dangling link of this name exists. An error is not an answer. */
enum status file_has(const char *path, bool *ret_has);
/* Refuses a path that begins with ~, which only a shell expands (ST_USAGE); `key` is for the
 * message. */
enum status file_check_place(const char *key, const char *path);
/* False also for what cannot be looked at: opening it says why not. */
bool file_is_dir(const char *path);
/* Up to size - 1 bytes as text in one read, without allocating; false and "" if there are none. */
bool file_peek(const char *path, char *text, int size);
/* Opens a regular file for reading; the caller closes the descriptor. */
enum status file_open(const char *path, int *ret_fd, int64_t *ret_size);
/* Reads the whole file and appends a zero byte. */
enum status file_read(const char *path, struct arena *a, char **ret_data, int64_t *ret_size);
/* The same; ST_FORMAT if the file has more than `most` bytes, before memory is taken. */
enum status file_read_most(const char *path, int64_t most, struct arena *a, char **ret_data,
                           int64_t *ret_size);
/* Up to `most` bytes from a descriptor, where it stands; 0: the end. `path` is for the message. */
enum status file_read_next(int fd, const char *path, void *ret, int64_t most, int64_t *ret_bytes);
/* Reads `bytes` bytes at the offset `from` of an open file; ST_FORMAT if it ends before. `path` is
 * for the message. Files are not mapped: an error of the disk, or a file that another program cuts,
 * would end the process. */
enum status file_read_range(int fd, const char *path, int64_t from, int64_t bytes, void *ret);
/* Opens a folder; -1 and errno if that fails. */
int file_open_folder(const char *folder);
/* Writes all bytes where a descriptor stands; `ret_done`: how many were, also if it fails. */
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

/* Creates one directory durably; one that exists is ST_OK. */
enum status file_make_dir(const char *path);
/* Creates a directory and its missing parents, durably. `ret_made`: how many, also if it fails. */
enum status file_make_dirs(const char *path);
enum status file_make_dirs_count(const char *path, int *ret_made);
/* The same for the folder of a file. */
enum status file_make_parent(const char *path);
/* Syncs a folder, or the one of a path, so that a rename in it survives a crash. */
enum status file_sync_folder(const char *folder);
enum status file_sync_parent(const char *path);
/* Removes a file; or a directory, which is no link, and its contents. A missing one is ST_OK. */
enum status file_remove(const char *path);
enum status file_remove_dir(const char *path);

enum { FILE_LONGEST = 1023, FILE_TEMPORARY = FILE_LONGEST + 32 };

/* Writes a file under a private name in the same folder; commit syncs and renames it, so readers
 * see the complete file or none. A file that `path` has already is replaced; one that is not a
 * regular file is refused. Replace a file whose path the user chose by own_write only
 * (base/own.h). */
struct file_writer {
    FILE *stream; /* write here, or by file_writer_add */
    /* private to file.c */
    int error; /* of the first file_writer_add that failed */
    char path[FILE_LONGEST + 1], temporary[FILE_TEMPORARY];
};
enum status file_writer_open(struct file_writer *w, const char *path);
/* What fails is reported by the commit. */
void file_writer_add(struct file_writer *w, const void *data, int64_t bytes);
/* Flushes, syncs and names the file; on failure (for example a full disk) nothing is left of it. */
enum status file_writer_commit(struct file_writer *w);
/* Drops the file; does nothing after a commit. */
void file_writer_discard(struct file_writer *w);
/* Writes the whole file: open, add, commit. */
enum status file_write(const char *path, const void *data, int64_t size);
/* Checks whether the file could be written now; leaves nothing behind. */
enum status file_check_writable(const char *path);

/* A private name for what will become `path`: NAME.0123456789ab.tmp. No one can guess it. */
enum status file_temporary_name(const char *path, char ret[FILE_TEMPORARY]);
/* The length of NAME if `entry` is such a name, else 0. */
int file_temporary_of(const char *entry);

#endif
