#include "train/runlog.h"

#include "backend/sample.h"
#include "base/file.h"
#include "base/log.h"
#include "base/record.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 1024 };

/* The iteration of a line; -1 if the line is not valid. heap_guard_libraries ensures that a valid
 * line is not taken for invalid because memory ran out. */
static int64_t iter_of(const char *line, int64_t bytes)
{
    json_t *o = json_loadb(line, (size_t)bytes, 0, NULL);
    json_t *iter = json_object_get(o, "iter");
    int64_t ret = json_is_integer(iter) ? (int64_t)json_integer_value(iter) : -1;
    json_decref(o);
    return ret;
}

/* Appends the lines to keep to `kept`. A truncated last line is normal after a kill and is dropped
 * silently; earlier invalid lines cause a warning. */
static void keep_lines(struct str *kept, const char *path, const char *text, int64_t bytes,
                       int64_t first_iter)
{
    int corrupt = 0;
    for (int64_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', (size_t)(bytes - at));
        if (!end) break;
        int64_t n = end - (text + at) + 1, iter = iter_of(text + at, n);
        corrupt += iter < 0;
        if (iter >= 0 && iter < first_iter) str_append_bytes(kept, text + at, n);
        at += n;
    }
    if (corrupt) log_warning("%s: dropped %d corrupt lines", path, corrupt);
}

static enum status truncate_log(const char *path, int64_t first_iter)
{
    bool exists;
    TRY(file_has(path, &exists));
    if (!exists) return ST_OK;
    if (first_iter == 0) return file_write(path, "", 0);
    struct arena scratch = {};
    struct str kept = {};
    char *text;
    int64_t bytes;
    enum status st = file_read(path, &scratch, &text, &bytes);
    if (st == ST_OK) keep_lines(&kept, path, text, bytes, first_iter);
    if (st == ST_OK && kept.len != bytes) st = file_write(path, str_text(&kept), kept.len);
    str_release(&kept);
    arena_release(&scratch);
    return st;
}

enum status runlog_open(struct runlog *l, const char *path, int64_t first_iter)
{
    if (strlen(path) >= sizeof l->path) return fail(ST_USAGE, "%s: the path is too long", path);
    TRY(truncate_log(path, first_iter));
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0666);
    if (fd < 0) return file_fail(path, errno);
    l->fd = fd;
    l->pending = 0;
    strcpy(l->path, path);
    return file_sync_parent(path);
}

void runlog_close(struct runlog *l)
{
    close(l->fd);
    l->fd = -1;
}

enum status runlog_sync(const struct runlog *l)
{
    return file_sync_data(l->fd, l->path);
}

enum status runlog_flush(struct runlog *l)
{
    int64_t done;
    enum status st = file_append(l->fd, l->path, l->pending_text, l->pending, &done);
    l->pending -= (int)done;
    memmove(l->pending_text, l->pending_text + done, (size_t)l->pending);
    return st;
}

static enum status append(struct runlog *l, const char *line, int n)
{
    BUG_IF(n < 0 || n >= LINE_BYTES, "a log line of %d bytes", n);
    bool fits = n <= RUNLOG_PENDING - l->pending;
    if (fits) {
        memcpy(l->pending_text + l->pending, line, (size_t)n);
        l->pending += n;
    }
    TRY(runlog_flush(l));
    return fits ? ST_OK : fail(ST_IO, "%s: a line is lost", l->path);
}

static enum status append_line(struct runlog *l, const char *kind, const struct record *r,
                               const void *from, const char *more)
{
    char line[LINE_BYTES];
    int n = snprintf(line, sizeof line, "{\"v\":%d,\"kind\":\"%s\"", RUN_VERSION, kind);
    n += record_line(r, from, line + n, LINE_BYTES - n);
    if (n < LINE_BYTES) n += snprintf(line + n, (size_t)(LINE_BYTES - n), "%s}\n", more);
    return append(l, line, n);
}

enum status runlog_step(struct runlog *l, const struct run_step *s)
{
    struct run_step known = *s;
    if (!(s->mfu > 0)) known.mfu = NAN;
    if (!(s->plan_flops > 0 && s->plan_bytes > 0)) known.plan_flops = known.plan_bytes = NAN;
    return append_line(l, "step", run_step_record, &known, "");
}

enum status runlog_eval(struct runlog *l, const struct run_eval *e)
{
    return append_line(l, "eval", run_eval_record, e, "");
}

enum status runlog_turn(struct runlog *l, const struct run_turn *t)
{
    return append_line(l, "turn", run_turn_record, t, "");
}

enum status runlog_wall(struct runlog *l, const struct run_wall *w)
{
    return append_line(l, "wall", run_wall_record, w, "");
}

enum status runlog_sample(struct runlog *l, const struct gauge_reading *r)
{
    char list[LINE_BYTES / 4];
    int n = 0;
    for (int i = 0; i < THROTTLE_COUNT; i++)
        if (r->throttle >> i & 1)
            n += snprintf(list + n, sizeof list - (size_t)n, "%s\"%s\"",
                          n ? "," : ",\"throttle\":[", throttle_name(i));
    snprintf(list + n, sizeof list - (size_t)n, n ? "]" : "");
    return append_line(l, "sample", gauge_reading_record, r, list);
}
