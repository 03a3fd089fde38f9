/* shell.h - words of a command that a user can copy into a shell.
 *
 * A word without special characters stays unchanged. Other words get POSIX quotes ('my run'). Words
 * with control or invisible characters or invalid UTF-8 are written as $'a\x0ab', which bash, ksh
 * and zsh read and POSIX has since Issue 8 (2.2.4, "Dollar-Single-Quotes"). */
#ifndef BASE_SHELL_H
#define BASE_SHELL_H

#include "base/arena.h"

/* In the arena; `word` itself if it needs no quotes. */
const char *shell_word(const char *word, struct arena *a);

#endif
