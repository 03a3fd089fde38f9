/* folder.h - writes a folder atomically.
 *
 * Files are written to a temporary folder in the same directory; commit syncs it and renames it. An
 * existing folder is replaced in one step, so a reader sees either the old or the new one. The
 * temporary name of a/b is a/.b.tmp. Where a file system cannot exchange two names, the old folder
 * is a/.b.old for a moment, and stays there if the process is killed then: see folder_restore. At
 * most one process may write a folder at a time. */
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H

#include "base/base.h"

struct folder_writer {
    char path[1024];
    char temporary[1040]; /* write the files here; ends in FOLDER_TEMPORARY */
    char old[1040];       /* ends in FOLDER_OLD */
};

#define FOLDER_TEMPORARY ".tmp"
#define FOLDER_OLD       ".old"

/* Creates the temporary folder and its missing parents; removes one left by a killed writer. */
enum status folder_writer_open(struct folder_writer *w, const char *path);
/* On failure removes the temporary folder and keeps the old one. */
enum status folder_writer_commit(struct folder_writer *w);
/* True if a writer was killed between its two renames: there is no `path`, but its older version
 * under the other name. The same is true for an instant while a writer runs. */
bool folder_is_interrupted(const char *path);
/* Renames that older version back. Otherwise does nothing. */
enum status folder_restore(const char *path);
/* Removes the temporary folder; preserves the message of the error that led here. */
void folder_writer_discard(struct folder_writer *w);

#endif
