/* subjects.h - what the words of a command name: run directories, with the profiles in them, folders of
 * such directories, and profiles and results of `strobe bench` that stand alone. */
#ifndef REPORT_SUBJECTS_H
#define REPORT_SUBJECTS_H

#include "present/sheet.h"
#include "report/profile_page.h"
#include "report/runs.h"

struct subjects {
    struct run *run;
    int runs;
    struct profile_set profiles;
    struct sheet *sheet;
    int sheets;
    char **dir; /* of each subject, in the order of the words */
    int dirs;
};

enum status subjects_read(char *const *words, int n, struct arena *a, struct subjects *ret);
/* Where a page about them goes if nobody says: one, in its directory; several, in the folder that holds
 * them all, else here. */
const char *subjects_page_path(const struct subjects *s, struct arena *a);

#endif
