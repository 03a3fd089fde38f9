/* run_word.h - opens the run or checkpoint that a command line names. */
#ifndef CLI_RUN_WORD_H
#define CLI_RUN_WORD_H

#include "train/saved.h"

/* Opens what the one word names that is not an override, and applies the overrides. Fails if there
 * is none or a second one; `command` is named in the error message. `best`: as in saved_open. */
enum status run_word_open(struct saved_run *s, int argc, char **argv, const char *command,
                          bool best, struct arena *a);

#endif
