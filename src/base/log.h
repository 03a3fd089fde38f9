/* log.h - messages to the user on stderr, with levels, and one live progress line.
 *
 * Control characters in messages are escaped (visible.h), so that no name or file contents can
 * control the terminal. Line breaks stay if the format itself has one. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/base.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* Messages up to `level` are shown (STROBE_LOG; default LOG_INFO). main sets it. */
void log_set_level(enum log_level level);
/* Waits until a descriptor is writable; false if a signal asks the program to stop first
 * (base/interrupt.h). The caller then drops the line, so that a stalled reader delays no save. */
bool log_can_write(int fd);
/* Sets a prefix of all messages: "flash=true: "; "" for none. The text must stay valid. */
void log_set_prefix(const char *prefix);
/* Prints the message with which the process ends. If several threads end it, only the first call
 * prints. */
void log_end(const char *message);
/* Drops the progress lines of this thread from now on. */
void log_mute_thread(void);
void log_warning(const char *format, ...) PRINTF_LIKE(1, 2);
void log_info(const char *format, ...) PRINTF_LIKE(1, 2);
void log_debug(const char *format, ...) PRINTF_LIKE(1, 2);

/* On a terminal: one line that fits the terminal and is redrawn in place, at most ten times a
 * second. Without a terminal: one line after five seconds, then one a minute. */
struct progress {
    const char *what; /* "train" */
    bool inner; /* part of other work: without a terminal the first line comes after a minute */
    int64_t total;
    int64_t done, done_first, start_ns, shown_ns;
    double left_s; /* time left, if the caller knows better than the rate so far; 0: unknown */
};
void progress_start(struct progress *p, const char *what, int64_t done, int64_t total);
/* Prints the time left, the bar if it fits, done/total and `detail`. */
void progress_show(struct progress *p, int64_t done, const char *detail);
/* Like progress_show, with `share` 0 to 1 of the work done; the total must be PROGRESS_WHOLE. */
enum { PROGRESS_WHOLE = 1000 };
void progress_share(void *progress, double share, const char *detail);
/* Clears the line, so that another process can print to the terminal. */
void progress_pause(struct progress *p);
/* Ends the line, so that the next output starts on a new one. */
void progress_end(struct progress *p);

#endif
