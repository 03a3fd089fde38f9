/* folder.h - a folder that appears whole or not at all.
 *
 * Its files are written under a temporary name beside its place; the commit syncs and renames it. A
 * folder that was there before is replaced in one step, so a reader sees the old one or the new one. */
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H

#include "base/base.h"

struct folder_writer {
    char path[1024];
    char temporary[1040]; /* write the files here; ends in FOLDER_TEMPORARY */
};

#define FOLDER_TEMPORARY ".tmp"

/* Makes the temporary folder and the missing ones above it; what a killed writer left is removed. */
enum status folder_writer_open(struct folder_writer *w, const char *path);
/* On failure the temporary folder is removed and the old one stands. */
enum status folder_writer_commit(struct folder_writer *w);
/* Removes the temporary folder; keeps the words of the failure that led here. */
void folder_writer_discard(struct folder_writer *w);

#endif
