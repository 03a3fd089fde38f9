/* profile_page.h - profiles as JSON for the page, more compact than the files.
 *
 * Rows are columns, in which repeated texts are stored once. */
#ifndef REPORT_PROFILE_PAGE_H
#define REPORT_PROFILE_PAGE_H

#include "report/changes.h"

struct json_t;

/* All profiles of a report, and what changed. */
struct profile_set {
    const struct profile_file *profile;
    int n;
    char *const *word; /* the arguments of the report, in order */
    int words;
    struct changes *change; /* of each profile after the first */
    int changes;
};

/* {"families", "profiles", "changes"}: the caller releases it with json_decref. */
struct json_t *profile_page_json(const struct profile_set *all, struct arena *a);

#endif
