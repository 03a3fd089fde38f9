#include "base/terminal.h"

#include "base/heap.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/visible.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void terminal_filter(struct terminal_guard *g, const char *text, int64_t bytes, struct str *s)
{
    struct str all = {0};
    char form[VISIBLE_BYTES];
    str_append_bytes(&all, g->held, g->n);
    str_append_bytes(&all, text, bytes);
    int held = utf8_unfinished(all.data, all.len);
    g->n = held;
    if (held) memcpy(g->held, all.data + all.len - held, (size_t)held);
    for (int64_t i = 0; i < all.len - held;) {
        i += visible_step(all.data + i, all.len - held - i, true, form);
        str_append(s, form);
    }
    str_release(&all);
}

static bool send_all(const struct str *s)
{
    for (int64_t sent = 0; sent < s->len;) {
        ssize_t n = write(STDOUT_FILENO, s->data + sent, (size_t)(s->len - sent));
        if (n < 0 && errno != EINTR) return false;
        if (n > 0) sent += n;
    }
    return true;
}

static ssize_t write_shown(void *cookie, const char *text, size_t bytes)
{
    struct str s = {0};
    terminal_filter(cookie, text, (int64_t)bytes, &s);
    bool sent = send_all(&s);
    str_release(&s);
    return sent ? (ssize_t)bytes : 0;
}

void terminal_guard_stdout(void)
{
    static struct terminal_guard guard;
    if (!isatty(STDOUT_FILENO)) return;
    FILE *shown = fopencookie(&guard, "w", (cookie_io_functions_t){.write = write_shown});
    if (shown) {
        setvbuf(shown, NULL, _IOLBF, BUFSIZ);
        stdout = shown;
    } else {
        heap_end(0);
    }
}
