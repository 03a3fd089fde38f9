/* profile_page.h - profiles as JSON for the page, more compact than the files.
 *
 * Repeated texts are stored once, in a list; numbers have six digits. */
#ifndef REPORT_PROFILE_PAGE_H
#define REPORT_PROFILE_PAGE_H

#include "result/profile_file.h"

struct json_t;

/* All profiles of a report. The second and later ones are compared with the first. */
struct profile_set {
    const struct profile_file *profile;
    int n;
    char *const *word; /* the arguments of the report, in order */
    int words;
};

/* {"families", "profiles", "changes"}: the caller releases it with json_decref. */
struct json_t *profile_page_json(const struct profile_set *all, struct arena *a);

#endif
