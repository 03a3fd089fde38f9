/* profile_page.h - profiles as the page takes them: less than the files, in fewer words.
 *
 * Texts that repeat stand once, in a list; numbers have six digits. */
#ifndef REPORT_PROFILE_PAGE_H
#define REPORT_PROFILE_PAGE_H

#include "report/profile_file.h"

struct json_t;

/* All profiles of a report. The second and later ones are held against the first. */
struct profile_set {
    const struct profile_file *profile;
    int n;
    char *const *word; /* what the report was asked for, in this order */
    int words;
};

/* {"families", "profiles", "changes"}: the caller releases it with json_decref. */
struct json_t *profile_page_json(const struct profile_set *all, struct arena *a);

#endif
