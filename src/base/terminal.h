/* terminal.h - what goes to a terminal is shown, never obeyed. */
#ifndef BASE_TERMINAL_H
#define BASE_TERMINAL_H

#include "base/base.h"

/* If stdout is a terminal, everything printed on it from now on passes through visible.h; line
 * breaks and tabs stay. To a pipe or a file the bytes go unchanged. main calls it once, first. */
void terminal_guard_stdout(void);

/* The guard's memory of a character of which only the first bytes have been written. */
struct terminal_guard {
    char held[4];
    int n;
};
struct str;
/* Appends what is to be sent for `bytes` more bytes. */
void terminal_filter(struct terminal_guard *g, const char *text, int64_t bytes, struct str *s);

#endif
