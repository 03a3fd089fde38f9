/* profile_table.h - a profile for people: its tables, and what they say in words. */
#ifndef VIEW_PROFILE_TABLE_H
#define VIEW_PROFILE_TABLE_H

#include "present/table_form.h"
#include "profile/profile.h"

struct profile_table {
    enum profile_by by;
    unsigned phases;
    int rows; /* lines at most; 0: all */
};

/* `words`: which configuration it is. */
void profile_table_print(const struct profile *p, const struct profile_table *t,
                         const struct table_form *f, const char *words, struct str *s,
                         struct arena *a);

#endif
