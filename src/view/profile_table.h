/* profile_table.h - prints a profile: its tables and a summary in sentences. */
#ifndef VIEW_PROFILE_TABLE_H
#define VIEW_PROFILE_TABLE_H

#include "present/table_form.h"
#include "profile/profile.h"

struct profile_table {
    enum profile_by by;
    unsigned phases;
    int rows;       /* maximum number of lines; 0: all */
    bool occupancy; /* also how kernels are launched; only of a GPU, BY_KERNEL */
};

/* `words` describes the configuration. */
void profile_table_print(const struct profile *p, const struct profile_table *t,
                         const struct table_form *f, const char *words, struct str *s,
                         struct arena *a);

#endif
