/* shell.h - words of a command that a user can copy into a shell.
 *
 * A word without special characters stays as it is. Others are quoted as in POSIX ('my run'); with
 * control characters, other bytes that no terminal shows, or bytes that are not UTF-8 as $'a\x0ab',
 * which bash, ksh and zsh read and POSIX has since Issue 8 (2.2.4, "Dollar-Single-Quotes"). */
#ifndef BASE_SHELL_H
#define BASE_SHELL_H

#include "base/arena.h"

/* In the arena; `word` itself if it needs no quotes. */
const char *shell_word(const char *word, struct arena *a);

#endif
