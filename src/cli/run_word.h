/* run_word.h - the word of a command line that names a run or a checkpoint. */
#ifndef CLI_RUN_WORD_H
#define CLI_RUN_WORD_H

#include "base/base.h"

/* Takes the one word that is no override out of the words; `command` is for the sentence if there is
 * none, or a second one. */
enum status run_word_take(int *argc, char **argv, const char *command, const char **ret_run);

#endif
