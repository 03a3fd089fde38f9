/* run_word.h - opens the run or checkpoint that a command line names. */
#ifndef CLI_RUN_WORD_H
#define CLI_RUN_WORD_H

#include "train/saved.h"

/* The run, checkpoint or model that a word names: RUN, also a folder called flash=true;
 * --out_dir=RUN or --init_from=MODEL, as in nanoGPT. NULL: the word is an override. */
const char *run_word_path(const char *word);
/* Among the words of the command line, one names a run or checkpoint, and all others are overrides:
 * opens the run and applies the overrides. Fails if no word or more than one word names a run;
 * `command` is named in the error message. `best`: as in saved_open. */
enum status run_word_open(struct saved_run *s, int argc, char **argv, const char *command,
                          bool best, struct arena *a);

#endif
