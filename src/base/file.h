/* file.h - read whole files, map files, and write files atomically.
 *
 * Every error message names the path and the operating system's reason. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/arena.h"

#include <stdio.h>

bool file_exists(const char *path);
bool file_is_dir(const char *path);
/* Up to size - 1 bytes as text in one read, without allocating; false and "" if there are none. */
bool file_peek(const char *path, char *text, int size);
/* Reads the whole file and appends a zero byte. */
enum status file_read(const char *path, struct arena *a, char **ret_data, int64_t *ret_size);
/* Maps a file read-only; an empty file is ST_FORMAT. Release the mapping with file_unmap. */
enum status file_map(const char *path, void **ret_map, int64_t *ret_size);
void file_unmap(void *map, int64_t size);
/* The user's cache folder by the XDG rules (a relative XDG_CACHE_HOME counts as unset), or NULL if
 * there is no home directory. The folder may not exist yet. */
const char *file_cache_folder(struct arena *a);
/* Creates a directory and its missing parents. */
enum status file_make_dirs(const char *path);
/* The same for the folder of a file. */
enum status file_make_parent(const char *path);
/* Removes a directory and its contents. A missing directory is ST_OK. */
enum status file_remove_dir(const char *path);

/* Writes a file under a temporary name in the same directory; commit syncs it and renames it to
 * `path`, so readers see the complete file or none. */
struct file_writer {
    FILE *stream; /* write here */
    char path[1024], temporary[1040];
};
enum status file_writer_open(struct file_writer *w, const char *path);
/* Flushes, syncs and renames; on failure (for example a full disk) removes the temporary file. */
enum status file_writer_commit(struct file_writer *w);
void file_writer_discard(struct file_writer *w);
/* Opens, writes and commits. */
enum status file_write(const char *path, const void *data, int64_t size);
/* Checks whether the file could be written now; leaves nothing behind. */
enum status file_check_writable(const char *path);
/* Syncs a directory, or the one that holds `path`, so that a rename in it survives a crash. */
enum status file_sync_dir(const char *path);
enum status file_sync_parent(const char *path);

#endif
