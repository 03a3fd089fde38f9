/* file.h - files as a careful program treats them: read whole, mapped, written atomically.
 *
 * Every failure names the path and what the system said. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/arena.h"

#include <stdio.h>

bool file_exists(const char *path);
bool file_is_dir(const char *path);
/* The whole file, with a zero byte behind it. */
enum status file_read(const char *path, struct arena *a, char **ret_data, int64_t *ret_size);
/* Read-only mapping; an empty file is ST_FORMAT. file_unmap takes what it returned. */
enum status file_map(const char *path, void **ret_map, int64_t *ret_size);
void file_unmap(void *map, int64_t size);
/* The user's folder for what can be made again, by the XDG rules (a relative XDG_CACHE_HOME counts as unset);
 * NULL: there is no home to put it in. It may not exist yet. */
const char *file_cache_folder(struct arena *a);
/* A directory and the missing ones above it. */
enum status file_make_dirs(const char *path);
/* Removes a directory and what is in it. Not there: ST_OK. */
enum status file_remove_dir(const char *path);

/* A file under a temporary name beside its place; it appears by a rename, synced, or not at all. */
struct file_writer {
    FILE *stream; /* write here */
    char path[1024], temporary[1040];
};
enum status file_writer_open(struct file_writer *w, const char *path);
/* Flushes, syncs and renames; on failure (a full disk) removes the temporary file. */
enum status file_writer_commit(struct file_writer *w);
void file_writer_discard(struct file_writer *w);
/* The three in one. */
enum status file_write(const char *path, const void *data, int64_t size);
/* Whether it could be written now; nothing stays behind. */
enum status file_check_writable(const char *path);
/* Syncs a directory, so that a rename in it survives a crash. */
enum status file_sync_dir(const char *path);

#endif
