/* folder.h - writes a folder atomically.
 *
 * Files are written to a temporary folder of a private name in the same directory, which is locked
 * (base/lock.h) until the writer ends: one writer at a time. Commit syncs the folder and renames
 * it. An existing folder is replaced in one step, so a reader sees the old or the new one. */
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H

#include "base/lock.h"
#include "base/own.h"

struct folder_writer {
    char temporary[FILE_TEMPORARY]; /* write the files here */
    /* private to folder.c */
    char path[FILE_LONGEST + 1], parent[FILE_LONGEST + 1];
    enum own_folder kind;
    struct lock lock; /* of `parent` */
};

/* Waits a few seconds for another writer in the directory, which must exist (then ST_USAGE),
 * removes what killed writers left and creates the temporary folder. `kind` is that of the folder:
 * what is removed has nothing foreign in it (base/own.h). The writer must not be copied. */
enum status folder_writer_open(struct folder_writer *w, const char *path, enum own_folder kind);
/* On failure removes the temporary folder and keeps the old one; so also if the directory was moved
 * meanwhile. If only the sync of the new name fails, both are kept: a crash may bring the old one
 * back. An old folder with a foreign file is kept under a temporary name, with a warning. */
enum status folder_writer_commit(struct folder_writer *w);
/* Removes the temporary folder; preserves the message of the error that led here. */
void folder_writer_discard(struct folder_writer *w);
/* Removes a folder in one step: a reader sees all of it or none. A missing folder is ST_OK;
 * ST_USAGE if own_check refuses it. */
enum status folder_remove(const char *path, enum own_folder kind);

#endif
