/* folder.h - writes a folder atomically.
 *
 * Files are written to a temporary folder of a private name in the same directory; commit syncs it
 * and renames it. An existing folder is replaced in one step, so a reader sees the old or the new
 * one. Two writers of one folder do not disturb each other: the later commit wins. */
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H

#include "base/own.h"

struct folder_writer {
    const struct dir *at;
    char path[FILE_LONGEST + 1];
    char temporary[FILE_TEMPORARY]; /* write the files here, below `at` */
    /* private to folder.c */
    enum own_folder kind;
    int lock;
    bool named; /* the folder has its name; the one before, if any, has the temporary one */
};

/* Creates the temporary folder and its missing parents; removes those of killed writers. `kind` is
 * that of the folder: what is removed has nothing foreign in it (base/own.h). */
enum status folder_writer_open(struct folder_writer *w, const char *path, enum own_folder kind);
/* The same in an open folder, which must outlive the writer; creates no parents. */
enum status folder_writer_open_at(struct folder_writer *w, const struct dir *at, const char *name,
                                  enum own_folder kind);
/* On failure removes the temporary folder and keeps the old one. If only the sync of the new name
 * fails, both are kept: a crash may bring the old one back. An old folder with a foreign file is
 * kept under a temporary name, with a warning. */
enum status folder_writer_commit(struct folder_writer *w);
/* Removes the temporary folder; preserves the message of the error that led here. */
void folder_writer_discard(struct folder_writer *w);
/* Puts a folder back under its name if a writer was killed while it replaced it, which leaves it
 * under another name on file systems that cannot exchange two names. */
enum status folder_restore_at(const struct dir *at, const char *name, enum own_folder kind);
/* Whether that is needed: there is no `path`, but a folder that was set aside from it. */
enum status folder_is_interrupted(const char *path, bool *ret_interrupted);
/* Whether a writer may give a folder or file this name for a time, and remove it later. */
bool folder_is_temporary(const char *name);
/* Removes a folder in one step: a reader sees all of it or none. A missing folder is ST_OK;
 * ST_USAGE if own_check refuses it. */
enum status folder_remove_at(const struct dir *at, const char *name, enum own_folder kind);

#endif
