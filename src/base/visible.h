/* visible.h - escapes control and invisible characters in text from files and users, so that it can
 * neither control a terminal nor hide anything.
 *
 * Line breaks and other control characters become \n, \t, \r or \x1b. C1 controls, line separators,
 * marks of the direction of writing and other invisible characters become their code point, as in
 * U+202E. Bytes that are not UTF-8 become \xff. All other text stays unchanged, including
 * backslashes, so a second pass changes nothing. */
#ifndef BASE_VISIBLE_H
#define BASE_VISIBLE_H

#include "base/base.h"

struct str;

enum { VISIBLE_BYTES = 12 }; /* the longest escaped character, with its zero byte */

/* Escapes the first character of a text of `bytes` > 0 bytes into `ret_form`, and returns the
 * number of bytes of that character. With `lines`, line breaks and tabs stay. */
int visible_step(const char *text, int64_t bytes, bool lines, char ret_form[VISIBLE_BYTES]);
/* Both append the escaped text; visible_append_lines keeps line breaks and tabs. */
void visible_append(struct str *s, const char *text);
void visible_append_lines(struct str *s, const char *text);
/* Escapes a text in place, in a buffer of `size` bytes; text that no longer fits is cut off. */
void visible_in_place(char *text, int64_t size, bool lines);

#endif
