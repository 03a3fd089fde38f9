/* own.h - what Strobe recognizes as its own output.
 *
 * Strobe deletes or replaces only what it recognizes, and follows no link to reach it. A folder is
 * recognized by the beginning of one of its files, and what is in it by name. A file that a user
 * names is recognized by its beginning. What is not recognized is refused with ST_USAGE and one
 * sentence that names the file. docs/FORMATS.md describes the files. */
#ifndef BASE_OWN_H
#define BASE_OWN_H

#include "base/file.h"

enum own_folder {
    OWN_SET,         /* a data set */
    OWN_RUN,         /* a run directory */
    OWN_CHECKPOINTS, /* its folder ckpt */
    OWN_CHECKPOINT,  /* one in it; may be damaged, so state.json or DONE is enough */
    OWN_MODEL,       /* a model for Hugging Face's programs */
};
enum own_file { OWN_PAGE, OWN_PICTURE, OWN_JUNIT, OWN_BENCH, OWN_PROFILE, OWN_TRACE };

struct own_found {
    bool empty; /* or missing */
    bool recognized;
    const char *foreign; /* an entry that is not of this kind, or a link; NULL: none */
    const char *unlike;  /* an entry that is recognized only if the folder is; NULL: none */
};
/* Looks at a folder, which may not be a link unless it is a run. */
enum status own_look(const char *folder, enum own_folder kind, struct arena *a,
                     struct own_found *ret);
/* ST_OK if the folder is missing or empty, or Strobe's own with nothing foreign in it: then it may
 * be deleted or replaced as a whole. One of a temporary name need not be complete. */
enum status own_check(const char *path, enum own_folder kind);
/* ST_USAGE if it is a link. */
enum status own_check_no_link(const char *path);
/* ST_USAGE if a file of a run that reports read is a link, since it may lead to any file; if
 * `also_unread`, also any other, and its folder ckpt. */
enum status own_check_links(const char *run, bool also_unread);

/* Removes what killed writers left in a run, or in its folder ckpt. Needs the claim of the run. */
void own_clean(const char *folder, enum own_folder kind);
/* Removes a folder of a temporary name; one with a foreign file in it stays, with a warning. */
void own_remove_temporary(const char *path, enum own_folder kind);
/* Removes the files that a training writes into its run, but for ckpt. */
enum status own_clear_run(const char *run);

/* ST_OK if there is no such file, an empty one, or one of this kind. */
enum status own_check_file(const char *path, enum own_file kind);
/* The same, and that the file could be written now; leaves nothing behind. */
enum status own_check_writable(const char *path, enum own_file kind);
/* Writes a file whose path the user chose (base/file.h). */
enum status own_write(const char *path, enum own_file kind, const void *data, int64_t size);
/* Removes a file of this kind; leaves any other. */
void own_remove(const char *path, enum own_file kind);

#endif
