/* foreign.h - data sets of other programs, which are used as they are: THE table of kinds of such
 * folders, nanoGPT's and llm.c's. docs/FORMATS.md describes them.
 *
 * A new kind of folder: how it is recognised and what it has, and its row in the table of
 * foreign.c. */
#ifndef DATA_FOREIGN_H
#define DATA_FOREIGN_H

#include "data/dataset.h"

struct foreign_set {
    const char *source; /* for readers: whose files these are */
    const char *note;   /* to be told when the set is opened; NULL: nothing */
    const char *counts; /* where the counts of tokens are from: "its size" */
    struct vocabulary vocabulary;
    struct foreign_split {
        struct token_file *file; /* as token_file_open takes them, in the order of the split */
        int files;
    } split[SPLIT_COUNT];
};

/* Looks at the names in a folder, at headers and vocabularies, but not at tokens. *ret_found is
 * false if the folder is of no kind of the table, or does not exist. ST_FORMAT: a file of it is
 * damaged. */
enum status foreign_find(const char *folder, bool *ret_found, struct foreign_set *ret,
                         struct arena *a);

#endif
