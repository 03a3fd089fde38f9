/* folder.h - writes a folder atomically.
 *
 * Files are written to a temporary folder in the same directory, which has one writer at a time: it
 * is locked (base/lock.h) until the writer ends. The commit syncs and renames the folder. An
 * existing folder is replaced in one step, so a reader sees either the old or the new one. */
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

/* Locks the directory, which must exist; ST_USAGE if another writer holds the lock for more than a
 * few seconds. Removes the temporary folders of killed writers and creates a new one. Only folders
 * that own_check accepts as `kind` (base/own.h) are removed. The writer must not be copied. */
enum status folder_writer_open(struct folder_writer *w, const char *path, enum own_folder kind);
/* On failure, also if the directory was moved meanwhile, removes the temporary folder and keeps the
 * old one. If only the sync after the rename fails, both are kept, because a crash may restore the
 * old one. An old folder with a foreign file is kept under a temporary name, with a warning. */
enum status folder_writer_commit(struct folder_writer *w);
/* Removes the temporary folder and keeps the current error message. */
void folder_writer_discard(struct folder_writer *w);
/* Removes a folder in one step: a reader sees all of it or none. A missing folder is ST_OK;
 * ST_USAGE if own_check refuses it. */
enum status folder_remove(const char *path, enum own_folder kind);

#endif
