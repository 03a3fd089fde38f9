/* terminal.h - escapes control characters in the output to a terminal. */
#ifndef BASE_TERMINAL_H
#define BASE_TERMINAL_H

#include "base/base.h"

/* If stdout is a terminal, escapes all its output from now on (visible.h), except line breaks and
 * tabs. Output to a pipe or a file stays unchanged. main calls this once, first. */
void terminal_guard_stdout(void);

/* Holds the first bytes of a character whose other bytes have not been written yet. */
struct terminal_guard {
    char held[4];
    int n;
};
struct str;
/* Appends the escaped form of the next `bytes` bytes of output to `s`. */
void terminal_filter(struct terminal_guard *g, const char *text, int64_t bytes, struct str *s);

#endif
