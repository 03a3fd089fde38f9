/* subjects.h - reads what the arguments of a report name: run directories with their profiles,
 * folders of such directories, and separate profiles and results of `strobe bench`. */
#ifndef REPORT_SUBJECTS_H
#define REPORT_SUBJECTS_H

#include "present/sheet.h"
#include "report/profile_page.h"
#include "report/runs.h"

struct subjects {
    struct run *run;
    int runs;
    struct profile_set profiles;
    bool first_run, first_profile; /* whether the first subject is, or has, one */
    struct sheet *sheet;
    int sheets;
    char **dir; /* of each subject, in the order of the arguments */
    int dirs;
};

enum status subjects_read(char *const *words, int n, struct arena *a, struct subjects *ret);
/* The default path of the page: for one subject in its directory; for several in their common
 * parent folder, or in the current folder if they have none. */
const char *subjects_page_path(const struct subjects *s, struct arena *a);

#endif
