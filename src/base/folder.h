/* folder.h - writes a folder atomically.
 *
 * Files are written to a temporary folder in the same directory; commit syncs it and renames it. An
 * existing folder is replaced in one step, so a reader sees either the old or the new one. */
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H

#include "base/base.h"

struct folder_writer {
    char path[1024];
    char temporary[1040]; /* write the files here; ends in FOLDER_TEMPORARY */
};

#define FOLDER_TEMPORARY ".tmp"

/* Creates the temporary folder and its missing parents; removes one left by a killed writer. */
enum status folder_writer_open(struct folder_writer *w, const char *path);
/* On failure removes the temporary folder and keeps the old one. */
enum status folder_writer_commit(struct folder_writer *w);
/* Removes the temporary folder; preserves the message of the error that led here. */
void folder_writer_discard(struct folder_writer *w);

#endif
