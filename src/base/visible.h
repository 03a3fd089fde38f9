/* visible.h - text of files and users in a form that no terminal obeys and that hides nothing.
 *
 * Shown are: line breaks and other control characters as \n, \t, \r or \x1b; the controls of C1,
 * line separators, marks that turn the direction of writing and other invisible characters as
 * U+202E; bytes that are not UTF-8 as \xff. All other text stays as it is, backslashes as well, so
 * that a second pass changes nothing. */
#ifndef BASE_VISIBLE_H
#define BASE_VISIBLE_H

#include "base/base.h"

struct str;

enum { VISIBLE_BYTES = 12 }; /* the longest form of a character, with its zero byte */

/* Writes the form of the first character of `bytes` > 0 bytes, and returns how many bytes that
 * character has. `lines`: line breaks and tabs stay. */
int visible_step(const char *text, int64_t bytes, bool lines, char ret_form[VISIBLE_BYTES]);
/* Appends one line of text, or several lines whose breaks and tabs stay. */
void visible_append(struct str *s, const char *text);
void visible_append_lines(struct str *s, const char *text);
/* Rewrites a text of at most `size` bytes in place; what no longer fits is cut off. */
void visible_in_place(char *text, int64_t size, bool lines);

#endif
