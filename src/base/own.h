/* own.h - recognizes files and folders that Strobe has written.
 *
 * Strobe deletes or replaces only files and folders that it recognizes, and follows no links to
 * them. (A training may begin or continue in a run directory that is a link.) A folder is
 * recognized by the first bytes of one of its files; the entries of a recognized folder are
 * recognized by name. A file whose path the user chose is recognized by its first bytes. Anything
 * else is refused with ST_USAGE and its name. docs/FORMATS.md describes the files. */
#ifndef BASE_OWN_H
#define BASE_OWN_H

#include "base/file.h"

enum own_folder {
    OWN_SET,         /* a data set */
    OWN_RUN,         /* a run directory */
    OWN_CHECKPOINTS, /* the folder ckpt of a run */
    OWN_CHECKPOINT,  /* in ckpt; recognized by state.json or DONE, as either may be damaged */
    OWN_MODEL,       /* a model in Hugging Face's format */
};
enum own_file { OWN_PAGE, OWN_PICTURE, OWN_JUNIT, OWN_BENCH, OWN_PROFILE, OWN_TRACE };

struct own_found {
    bool empty; /* the folder is empty or missing */
    bool recognized;
    /* An entry that does not belong in a folder of this kind, or a link. NULL: none. */
    const char *foreign;
    /* An entry with a known name, whose first bytes do not show that Strobe wrote it; it counts as
     * Strobe's only in a recognized folder. NULL: none. */
    const char *by_name;
};
/* Examines a folder. ST_USAGE if it is a link, unless `kind` is OWN_RUN. */
enum status own_look(const char *folder, enum own_folder kind, struct arena *a,
                     struct own_found *ret);
/* ST_OK if the folder may be deleted or replaced as a whole: it is missing or empty, or Strobe's
 * own without a foreign entry. A folder with a temporary name may be incomplete. */
enum status own_check(const char *path, enum own_folder kind);
/* ST_USAGE if `path` is a link. */
enum status own_check_no_link(const char *path);
/* ST_USAGE if a file of a run is a link, because a link may lead to any file. plan.txt and the
 * folder ckpt, which reports do not read, are checked only with `also_unread`. */
enum status own_check_links(const char *run, bool also_unread);

/* Removes temporary files of killed writers from a run that the caller has locked, or its ckpt. */
void own_clean(const char *folder, enum own_folder kind);
/* Removes a folder with a temporary name; warns and keeps it if it has a foreign file. */
void own_remove_temporary(const char *path, enum own_folder kind);
/* Removes the files that a training writes into its run, except the folder ckpt. */
enum status own_clear_run(const char *run);

/* ST_OK if the file is missing, empty, or of this kind. */
enum status own_check_file(const char *path, enum own_file kind);
/* Also checks that the file could be written now; leaves nothing behind. */
enum status own_check_writable(const char *path, enum own_file kind);
/* Writes a file whose path the user chose (base/file.h). */
enum status own_write(const char *path, enum own_file kind, const void *data, int64_t size);
/* Removes a file of this kind; leaves any other. */
void own_remove(const char *path, enum own_file kind);

#endif
