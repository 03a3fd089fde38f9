#include "base/log.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/visible.h"

#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR = 24 };
/* Intervals of progress lines: on a terminal; without one, before the first and between others. */
static const int64_t redraw_ns = 100000000, plain_first_ns = 5000000000, plain_ns = 60000000000;

static enum log_level level_shown = LOG_INFO;
static const char *message_prefix = "";
static _Thread_local bool muted;
static _Atomic bool line_live; /* an unfinished progress line is on the terminal */

void log_set_level(enum log_level level)
{
    level_shown = level;
}

bool log_can_write(int fd)
{
    enum { LOOK_MS = 50 }; /* a signal may arrive between the check of its flag and the wait */
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    while (poll(&p, 1, interrupt_noted() ? 0 : LOOK_MS) <= 0)
        if (interrupt_noted()) return false;
    return true;
}

/* Flushes stdout first, so that results and messages keep their order if both go to one file. */
static void flush_results(void)
{
    if (__fpending(stdout) && log_can_write(STDOUT_FILENO)) fflush(stdout);
}

static void print_message(enum log_level level, const char *prefix, const char *format,
                          va_list args)
{
    if (level > level_shown) return;
    char text[2048];
    vsnprintf(text, sizeof text, format, args);
    /* Line breaks stay only if the format itself has one; line breaks in names are escaped. */
    visible_in_place(text, sizeof text, strchr(format, '\n'));
    flush_results();
    if (!log_can_write(STDERR_FILENO)) return;
    /* One call, so that the lines of several threads do not mix. */
    fprintf(stderr, "%s%s%s%s\n", line_live ? "\r\033[K" : "", prefix, message_prefix, text);
    line_live = false;
}

void log_end(const char *message)
{
    static atomic_flag printed = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&printed) && log_can_write(STDERR_FILENO))
        fprintf(stderr, "strobe: %s\n", message);
}

void log_set_prefix(const char *prefix)
{
    message_prefix = prefix;
}

void log_mute_thread(void)
{
    muted = true;
}

void log_warning(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_message(LOG_WARNING, "strobe: warning: ", format, args);
    va_end(args);
}

void log_info(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_message(LOG_INFO, "", format, args);
    va_end(args);
}

void log_debug(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_message(LOG_DEBUG, "debug: ", format, args);
    va_end(args);
}

/* 3725 s -> "1 h 02 min". */
static void print_duration(struct str *s, double seconds)
{
    int64_t t = (int64_t)(seconds + 0.5);
    if (t < 60)
        str_printf(s, "%d s", (int)t);
    else if (t < 3600)
        str_printf(s, "%d min %02d s", (int)(t / 60), (int)(t % 60));
    else
        str_printf(s, "%lld h %02d min", (long long)(t / 3600), (int)(t / 60 % 60));
}

/* Estimates the time left from the rate since progress_start; earlier work does not count. */
static void print_time_left(const struct progress *p, struct str *s, int64_t now_ns)
{
    int64_t worked = p->done - p->done_first;
    if (p->total <= 0 || p->done >= p->total || (worked <= 0 && !(p->left_s > 0))) return;
    double per_unit = (double)(now_ns - p->start_ns) * 1e-9 / (double)worked;
    str_append(s, "  ");
    print_duration(s, p->left_s > 0 ? p->left_s : per_unit * (double)(p->total - p->done));
    str_append(s, " left");
}

static void print_bar(const struct progress *p, struct str *s)
{
    double share = (double)p->done / (double)p->total;
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    int full = (int)(share * BAR);
    str_append(s, " [");
    for (int i = 0; i < BAR; i++) str_append(s, i < full ? "=" : i == full ? ">" : " ");
    str_append(s, "]");
}

/* The time left comes first and the figures last, because the end may be cut off. */
static void print_line(const struct progress *p, struct str *s, const char *detail, bool bar,
                       int64_t now_ns)
{
    visible_append(s, message_prefix);
    visible_append(s, p->what);
    print_time_left(p, s, now_ns);
    if (p->total > 0) {
        double share = (double)p->done / (double)p->total;
        if (bar) print_bar(p, s);
        str_printf(s, "  %.0f %%  %lld/%lld",
                   100 * (share < 0   ? 0
                          : share > 1 ? 1
                                      : share),
                   (long long)p->done, (long long)p->total);
    } else {
        str_printf(s, " %lld", (long long)p->done);
    }
    if (detail && *detail) {
        str_append(s, "  ");
        visible_append(s, detail);
    }
}

static int columns_of(const struct str *s)
{
    int n = 0;
    for (int64_t i = 0; i < s->len; i++) n += utf8_begins(s->data[i]);
    return n;
}

/* Truncates a line to the width of the terminal, because a wrapped line cannot be redrawn. */
static void cut_to(struct str *s, int columns)
{
    int seen = 0;
    for (int64_t i = 0; i < s->len; i++) {
        if (!utf8_begins(s->data[i]) || ++seen <= columns) continue;
        s->data[i] = '\0';
        s->len = i;
        return;
    }
}

void progress_start(struct progress *p, const char *what, int64_t done, int64_t total)
{
    int64_t now_ns = clock_ns();
    *p = (struct progress){.what = what,
                           .total = total,
                           .done = done,
                           .done_first = done,
                           .start_ns = now_ns,
                           .shown_ns = now_ns};
}

void progress_show(struct progress *p, int64_t done, const char *detail)
{
    bool ends = p->total > 0 && done >= p->total && p->done < p->total;
    p->done = done;
    if (level_shown < LOG_INFO || muted) return;
    bool terminal = isatty(STDERR_FILENO);
    int64_t now_ns = clock_ns();
    bool shown = p->shown_ns != p->start_ns;
    int64_t wait_ns = terminal ? redraw_ns : shown || p->inner ? plain_ns : plain_first_ns;
    bool due = now_ns - p->shown_ns >= wait_ns || (terminal && !shown);
    /* The last update is always shown, unless it would be the only plain line of a short run. */
    if (!due && !(ends && (terminal || shown))) return;
    p->shown_ns = now_ns;

    struct str line = {0};
    print_line(p, &line, detail, terminal, now_ns);
    flush_results();
    if (!log_can_write(STDERR_FILENO)) {
        str_release(&line);
        return;
    }
    if (terminal) {
        struct winsize size;
        if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) {
            if (columns_of(&line) >= size.ws_col) {
                str_release(&line);
                print_line(p, &line, detail, false, now_ns);
            }
            cut_to(&line, size.ws_col - 1);
        }
        fprintf(stderr, "\r%s\033[K", str_text(&line));
        fflush(stderr);
        line_live = true;
    } else {
        fprintf(stderr, "%s\n", str_text(&line));
    }
    str_release(&line);
}

void progress_share(void *progress, double share, const char *detail)
{
    progress_show(progress, (int64_t)(share * PROGRESS_WHOLE), detail);
}

void progress_pause(struct progress *)
{
    if (muted) return;
    if (line_live && log_can_write(STDERR_FILENO)) fputs("\r\033[K", stderr);
    line_live = false;
}

void progress_end(struct progress *)
{
    if (muted) return;
    if (line_live && log_can_write(STDERR_FILENO)) fputc('\n', stderr);
    line_live = false;
}
