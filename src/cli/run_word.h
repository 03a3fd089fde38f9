/* run_word.h - finds the word of a command line that names a run or a checkpoint. */
#ifndef CLI_RUN_WORD_H
#define CLI_RUN_WORD_H

#include "base/base.h"

/* Removes the one word that is not an override from argv. Fails if there is none or a second one;
 * `command` is named in the error message. */
enum status run_word_take(int *argc, char **argv, const char *command, const char **ret_run);

#endif
