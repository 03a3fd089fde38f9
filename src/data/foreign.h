/* foreign.h - opens data sets of other programs (nanoGPT and llm.c) without converting them.
 * docs/FORMATS.md describes their folders.
 *
 * A new kind of folder needs a function that recognizes it, a function that opens it, and a row in
 * the table of foreign.c. */
#ifndef DATA_FOREIGN_H
#define DATA_FOREIGN_H

#include "data/dataset.h"

struct foreign_set {
    const char *source; /* for messages: the program that wrote the files */
    const char *note;   /* printed when the set is opened; NULL: nothing */
    const char *counts; /* for messages: what tells the number of tokens of a file: "its header" */
    struct vocabulary vocabulary;
    struct foreign_split {
        struct token_file *file; /* arguments for token_file_open, in the order of the split */
        int files;
    } split[SPLIT_COUNT];
};

/* Reads the names in a folder, headers and vocabularies, but no tokens. *ret_found is false if the
 * folder is of no known kind or does not exist. ST_FORMAT: a file is damaged. */
enum status foreign_find(const char *folder, bool *ret_found, struct foreign_set *ret,
                         struct arena *a);

#endif
