/* log.h - what is said to people while they wait, on stderr: levels, and one live progress line. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/base.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* Everything up to `level` is shown (STROBE_LOG; LOG_INFO unless set). Set by main. */
void log_set_level(enum log_level level);
enum log_level log_level_shown(void);
void log_warning(const char *format, ...) PRINTF_LIKE(1, 2);
void log_info(const char *format, ...) PRINTF_LIKE(1, 2);
void log_debug(const char *format, ...) PRINTF_LIKE(1, 2);

/* A line that is redrawn in place on a terminal, at most ten times a second; where stderr is no
 * terminal, a plain line every few seconds. */
struct progress {
    const char *what; /* "train" */
    int64_t total;
    int64_t done, done_first, start_ns, shown_ns;
    double
        left_s; /* that are left, where somebody knows better than the pace so far; 0: nobody does */
};
void progress_start(struct progress *p, const char *what, int64_t done, int64_t total);
/* bar, done/total, `detail`, time left. */
void progress_show(struct progress *p, int64_t done, const char *detail);
/* Ends the line; what is printed next starts on a fresh one. */
void progress_end(struct progress *p);

#endif
