#include "train/rundir.h"

#include "base/folder.h"
#include "base/json.h"
#include "base/own.h"
#include "train/checkpoint.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MEMORY_ROWS = 20 }; /* rows of the memory map in plan.txt */

/* --- the claim -------------------------------------------------------------------------------- */

enum { RUN_LONGEST = 900 }; /* longest path of a run directory; longer paths of files must fit */

/* Suggests another folder only if the error is specific to this one. */
static const char *remedy(enum status st)
{
    return st == ST_BUSY ? "close other programs and repeat the command"
           : st == ST_IO ? "repeat the command; if it fails again, the disk does"
                         : "choose another --out_dir";
}

/* Removes the last `made` existing folders of a path, up to the first that is not empty. */
static void remove_made(const char *run, int made)
{
    char path[RUN_LONGEST + 1];
    snprintf(path, sizeof path, "%s", run);
    while (made > 0) {
        if (rmdir(path) == 0)
            made--;
        else if (file_exists(path))
            break;
        char *slash = strrchr(path, '/');
        while (slash && !slash[1]) {
            *slash = '\0';
            slash = strrchr(path, '/');
        }
        if (!slash) break;
        *slash = '\0';
    }
}

enum status rundir_claim(struct rundir *r, const char *path, bool create)
{
    *r = (struct rundir){.lock.fd = -1};
    if (strlen(path) > RUN_LONGEST)
        return fail(ST_USAGE, "%.60s...: the path is longer than %d bytes", path, RUN_LONGEST);
    if (create) {
        enum status made = file_make_dirs_count(path, &r->made);
        if (made != ST_OK) remove_made(path, r->made);
        if (made != ST_OK)
            return fail_in(made, "cannot create the run directory (%s)", remedy(made));
    }
    enum status st = lock_take(&r->lock, path, 0);
    if (st == ST_OK) return ST_OK;
    if (st == ST_USAGE)
        return fail(ST_USAGE,
                    "another training run is using %s: wait until it ends, or choose another "
                    "--out_dir",
                    path);
    if (st == ST_ABSENT && !create)
        return fail(ST_USAGE,
                    "%s contains no run to continue: start one without --init_from=resume", path);
    remove_made(path, r->made);
    return fail_in(st, "cannot open the run directory (%s)", remedy(st));
}

void rundir_release(struct rundir *r, bool unused)
{
    if (r->lock.fd < 0) return;
    if (unused) remove_made(r->lock.path, r->made);
    lock_release(&r->lock);
}

enum status rundir_look(const char *dir, bool *ret_has_run)
{
    struct arena scratch = {0};
    struct own_found f;
    TRY(own_check_links(dir, true));
    enum status st = own_look(dir, OWN_RUN, &scratch, &f);
    const char *other = f.foreign ? f.foreign : f.by_name;
    if (st == ST_OK && !f.recognized && other)
        st =
            fail(ST_USAGE,
                 "%s/%s is not part of a Strobe run: choose an empty or a new folder for --out_dir",
                 dir, other);
    arena_release(&scratch);
    if (st == ST_OK) *ret_has_run = f.recognized;
    return st;
}

bool rundir_has_run(const char *dir)
{
    bool has;
    return rundir_look(dir, &has) != ST_OK || has;
}

void rundir_clean(const char *dir, struct arena *a)
{
    own_clean(dir, OWN_RUN);
    checkpoint_clean(dir, a);
}

/* The path of a file of the run. */
static const char *in(const char *dir, const char *name, char buffer[FILE_LONGEST + 1])
{
    snprintf(buffer, FILE_LONGEST + 1, "%s/%s", dir, name);
    return buffer;
}

enum status rundir_check_clear(const char *dir)
{
    char path[FILE_LONGEST + 1];
    TRY(own_check_no_link(dir));
    return own_check(in(dir, "ckpt", path), OWN_CHECKPOINTS);
}

enum status rundir_clear(const char *dir)
{
    char path[FILE_LONGEST + 1];
    TRY(rundir_check_clear(dir));
    TRY(folder_remove(in(dir, "ckpt", path), OWN_CHECKPOINTS));
    own_remove(in(dir, "report.html", path), OWN_PAGE); /* only if Strobe wrote it */
    return own_clear_run(dir);
}

enum status rundir_is_complete(const char *dir, bool *ret_complete)
{
    struct arena scratch = {0};
    char *text, path[FILE_LONGEST + 1];
    int64_t bytes;
    *ret_complete = false;
    enum status st = file_read(in(dir, "summary.json", path), &scratch, &text, &bytes);
    if (st == ST_OK) {
        json_t *summary = json_loadb(text, (size_t)bytes, 0, NULL);
        *ret_complete = json_is_true(json_object_get(summary, "complete"));
        json_decref(summary);
    } else if (st == ST_ABSENT) {
        st = ST_OK;
    }
    arena_release(&scratch);
    return st;
}

enum status rundir_progress(const char *dir, bool *ret_complete, int64_t *ret_last)
{
    struct arena scratch = {0};
    int64_t *iters;
    int count;
    enum status st = checkpoint_iters(dir, &scratch, &iters, &count);
    if (st == ST_OK) *ret_last = count ? iters[0] : -1;
    arena_release(&scratch);
    return st == ST_OK ? rundir_is_complete(dir, ret_complete) : st;
}

enum status rundir_reopen(const char *dir)
{
    char path[FILE_LONGEST + 1];
    own_remove(in(dir, "report.html", path), OWN_PAGE);
    TRY(file_remove(in(dir, "summary.json", path)));
    return file_remove(in(dir, "samples.txt", path));
}

/* --- the files -------------------------------------------------------------------------------- */

enum status rundir_write_text(const char *dir, const char *name, const char *text)
{
    char path[FILE_LONGEST + 1];
    return file_write(in(dir, name, path), text, (int64_t)strlen(text));
}

static const char identity_mark[] = "# run "; /* base/own.c recognizes config.conf by it */

enum status rundir_identity(const char *dir, struct arena *a, const char **ret)
{
    char *text, path[FILE_LONGEST + 1];
    int64_t bytes;
    *ret = NULL;
    enum status st = file_read(in(dir, "config.conf", path), a, &text, &bytes);
    if (st != ST_OK) return st == ST_ABSENT ? ST_OK : st;
    if (strncmp(text, identity_mark, strlen(identity_mark)) != 0) return ST_OK;
    const char *found = text + strlen(identity_mark);
    *ret = arena_printf(a, "%.*s", (int)strcspn(found, "\n"), found);
    return ST_OK;
}

enum status rundir_write_config(const char *dir, const struct config *c, const char *identity)
{
    struct str s = {0};
    str_printf(&s, "%s%s\n\n", identity_mark, identity);
    config_print(c, &s);
    enum status st = rundir_write_text(dir, "config.conf", str_text(&s));
    str_release(&s);
    return st;
}

static void print_plans(const struct program *p, struct str *s)
{
    static const enum graph_kind shown[] = {GRAPH_MICRO, GRAPH_UPDATE};
    for (int i = 0; i < COUNT_OF(shown); i++) {
        if (!p->built[shown[i]]) continue;
        str_printf(s, "# %s\n", graph_kind_name(shown[i]));
        plan_print(&p->plan[shown[i]], s);
        str_append(s, "\n");
    }
    str_append(s, "# memory at its peak\n");
    plan_print_memory(&p->plan[GRAPH_MICRO], MEMORY_ROWS, s);
}

enum status rundir_write_plan(const char *dir, const struct program *p)
{
    struct facts f = facts_of(p);
    struct str text = {0}, json = {0};
    print_plans(p, &text);
    json_print_with(facts_json(&f), JSON_INDENT(2), &json);
    enum status st = rundir_write_text(dir, "plan.txt", str_text(&text));
    if (st == ST_OK) st = rundir_write_text(dir, "plan.json", str_text(&json));
    str_release(&text);
    str_release(&json);
    return st;
}

void run_summary_print_json(const struct run_summary *s, struct str *out)
{
    json_t *j = record_add(json_pack("{s:i}", "v", RUN_VERSION), run_summary_record, s);
    if (!s->gauges.samples) json_object_set_new(j, "gauges", json_null());
    json_print_with(j, JSON_INDENT(2) | JSON_REAL_PRECISION(9), out);
}

enum status rundir_write_summary(const char *dir, const struct run_summary *s)
{
    struct str text = {0};
    run_summary_print_json(s, &text);
    enum status st = rundir_write_text(dir, "summary.json", str_text(&text));
    str_release(&text);
    return st;
}
