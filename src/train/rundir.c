#include "train/rundir.h"

#include "base/folder.h"
#include "base/json.h"
#include "base/own.h"
#include "train/ckpt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { MEMORY_ROWS = 20 }; /* rows of the memory map in plan.txt */

/* --- the claim -------------------------------------------------------------------------------- */

static enum status lock(const struct dir *d)
{
    /* File systems without locks are accepted. */
    if (flock(d->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return ST_OK;
    return fail(ST_USAGE,
                "another training run is using %s: wait until it ends, or choose another --out_dir",
                d->path);
}

/* Another folder helps only if this one is the reason. */
static const char *remedy(int error)
{
    if (error == EIO || error == EINTR)
        return "repeat the command; if it fails again, the disk does";
    if (error == EMFILE || error == ENFILE || error == ENOMEM)
        return "close other programs and repeat the command";
    return "choose another --out_dir";
}

/* Removes the last `made` folders of a path, as far as they are empty. */
static void remove_made(const char *run, int made)
{
    char path[DIR_LONGEST + 1];
    snprintf(path, sizeof path, "%s", run);
    for (int i = 0; i < made; i++) {
        if (rmdir(path) != 0) break;
        char *slash = strrchr(path, '/');
        while (slash && !slash[1]) {
            *slash = '\0';
            slash = strrchr(path, '/');
        }
        if (!slash) break;
        *slash = '\0';
    }
}

static enum status open_dir(struct rundir *r, const char *path, bool create)
{
    int made = 0;
    if (create) {
        errno = 0;
        enum status st = file_make_dirs_count(path, &made);
        if (st != ST_OK) return fail_in(st, "cannot create the run directory (%s)", remedy(errno));
        r->made = made > r->made ? made : r->made;
    }
    enum status st = dir_open(&r->dir, path);
    if (st == ST_OK) return ST_OK;
    int error = errno;
    if (st == ST_IO && error == ENOENT && !create)
        return fail(ST_USAGE,
                    "%s contains no run to continue: start one without --init_from=resume", path);
    remove_made(path, r->made);
    return st == ST_IO ? fail_in(st, "cannot open the run directory (%s)", remedy(error)) : st;
}

enum status rundir_claim(struct rundir *r, const char *path, bool create)
{
    enum { TRIES = 5 };
    enum status st = ST_OK;
    *r = (struct rundir){.dir.fd = -1};
    /* Between opening and locking, another process may remove the directory that it had claimed. */
    for (int i = 0; i < TRIES; i++) {
        TRY(open_dir(r, path, create));
        st = lock(&r->dir);
        if (st == ST_OK) st = dir_check(&r->dir);
        if (st == ST_OK) return ST_OK;
        dir_close(&r->dir);
        if (st == ST_USAGE) break;
    }
    return st;
}

void rundir_release(struct rundir *r, bool unused)
{
    if (r->dir.fd < 0) return;
    if (unused) remove_made(r->dir.path, r->made);
    dir_close(&r->dir);
}

enum status rundir_look(const struct dir *dir, bool *ret_has_run)
{
    struct arena scratch = {0};
    struct own_found f;
    TRY(own_check_links(dir, true));
    enum status st = own_look(dir, ".", OWN_RUN, &scratch, &f);
    const char *other = f.foreign ? f.foreign : f.unlike;
    if (st == ST_OK && !f.recognized && other)
        st =
            fail(ST_USAGE,
                 "%s/%s is not part of a Strobe run: choose an empty or a new folder for --out_dir",
                 dir->path, other);
    arena_release(&scratch);
    if (st == ST_OK) *ret_has_run = f.recognized;
    return st;
}

enum status rundir_look_at(const char *path, bool *ret_has_run)
{
    struct dir d;
    TRY(dir_by_path(&d, path));
    return rundir_look(&d, ret_has_run);
}

bool rundir_has_run(const char *path)
{
    bool has;
    return rundir_look_at(path, &has) != ST_OK || has;
}

void rundir_clean(const struct dir *dir)
{
    own_clean(dir, ".", OWN_RUN);
    ckpt_clean(dir);
}

/* Other pages of that name stay. */
static void remove_page(const struct dir *dir)
{
    char path[DIR_LONGEST + DIR_NAME];
    snprintf(path, sizeof path, "%s/report.html", dir->path);
    own_remove(path, OWN_PAGE);
}

enum status rundir_check_clear(const struct dir *dir)
{
    TRY(own_check_no_link(NULL, dir->path));
    return own_check(dir, "ckpt", OWN_CHECKPOINTS);
}

enum status rundir_clear(const struct dir *dir)
{
    TRY(rundir_check_clear(dir));
    TRY(folder_remove_at(dir, "ckpt", OWN_CHECKPOINTS));
    remove_page(dir);
    return own_clear_run(dir);
}

enum status rundir_is_complete(const struct dir *dir, bool *ret_complete)
{
    struct arena scratch = {0};
    char *text;
    int64_t bytes;
    *ret_complete = false;
    enum status st = file_read_at(dir, "summary.json", &scratch, &text, &bytes);
    if (st == ST_OK) {
        json_t *summary = json_loadb(text, (size_t)bytes, 0, NULL);
        *ret_complete = json_is_true(json_object_get(summary, "complete"));
        json_decref(summary);
    } else if (errno == ENOENT) {
        st = ST_OK;
    }
    arena_release(&scratch);
    return st;
}

enum status rundir_progress(const struct dir *dir, bool *ret_complete, int64_t *ret_last)
{
    struct arena scratch = {0};
    int64_t *iters;
    int count;
    enum status st = ckpt_iters(dir, &scratch, &iters, &count);
    if (st == ST_OK) *ret_last = count ? iters[0] : -1;
    arena_release(&scratch);
    return st == ST_OK ? rundir_is_complete(dir, ret_complete) : st;
}

enum status rundir_reopen(const struct dir *dir)
{
    remove_page(dir);
    TRY(file_remove_at(dir, "summary.json"));
    return file_remove_at(dir, "samples.txt");
}

/* --- the files -------------------------------------------------------------------------------- */

enum status rundir_write_text(const struct dir *dir, const char *name, const char *text)
{
    return file_write_at(dir, name, text, (int64_t)strlen(text));
}

static const char identity_mark[] = "# run "; /* at the beginning (base/own.c) */

enum status rundir_identity(const struct dir *dir, struct arena *a, const char **ret)
{
    char *text;
    int64_t bytes;
    *ret = NULL;
    enum status st = file_read_at(dir, "config.conf", a, &text, &bytes);
    if (st != ST_OK) return errno == ENOENT ? ST_OK : st;
    if (strncmp(text, identity_mark, strlen(identity_mark)) != 0) return ST_OK;
    const char *found = text + strlen(identity_mark);
    *ret = arena_printf(a, "%.*s", (int)strcspn(found, "\n"), found);
    return ST_OK;
}

enum status rundir_write_config(const struct dir *dir, const struct config *c, const char *identity)
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

enum status rundir_write_plan(const struct dir *dir, const struct program *p)
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

enum status rundir_write_summary(const struct dir *dir, const struct run_summary *s)
{
    struct str text = {0};
    run_summary_print_json(s, &text);
    enum status st = rundir_write_text(dir, "summary.json", str_text(&text));
    str_release(&text);
    return st;
}
