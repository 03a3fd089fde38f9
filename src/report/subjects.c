#include "report/subjects.h"

#include "base/log.h"
#include "base/own.h"
#include "report/peaks.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A directory or a file, and what it contains. */
struct found {
    char *dir, *profile, *bench; /* paths of files; NULL: absent */
    bool has_run;
    const char *name; /* of a profile without a run */
};

struct finding {
    struct found *found;
    int n, capacity;
    struct arena *a;
};

static void add_found(struct finding *f, struct found found)
{
    ARENA_GROW(f->a, f->found, f->n, f->capacity);
    f->found[f->n++] = found;
}

/* The parent folder; "." if the path has no slash. */
static char *parent_of(const char *path, struct arena *a)
{
    char *parent = arena_strdup(a, path);
    for (size_t end = strlen(parent); end > 1 && parent[end - 1] == '/'; end--)
        parent[end - 1] = '\0';
    char *slash = strrchr(parent, '/');
    if (!slash) return arena_strdup(a, ".");
    *slash = '\0';
    return *parent ? parent : arena_strdup(a, "/");
}

static const char *last_word(const char *path, struct arena *a)
{
    char full[PATH_MAX];
    if (!realpath(path, full)) return path;
    return arena_strdup(a, strrchr(full, '/')[1] ? strrchr(full, '/') + 1 : full);
}

/* "runs/flash/profile.json" is named "flash"; other files are named after themselves. */
static struct found file_found(char *path, struct arena *a)
{
    struct found f = {.dir = parent_of(path, a), .profile = path};
    bool is_sheet;
    (void)!sheet_is(path, &is_sheet); /* profile_file_read reports why it cannot be read */
    if (is_sheet) {
        f.profile = NULL;
        f.bench = path;
        return f;
    }
    f.name = last_word(path, a);
    size_t n = strlen(f.name);
    if (strcmp(f.name, "profile.json") == 0)
        f.name = last_word(f.dir, a);
    else if (n > 5 && strcmp(f.name + n - 5, ".json") == 0)
        f.name = arena_printf(a, "%.*s", (int)(n - 5), f.name);
    return f;
}

/* Adds a directory that has a run, a profile or a result. *ret: whether it has a run or profile. */
static enum status add_dir(struct finding *f, char *dir, bool *ret)
{
    struct found found = {.dir = dir,
                          .profile = arena_printf(f->a, "%s/profile.json", dir),
                          .bench = arena_printf(f->a, "%s/bench.json", dir)};
    TRY(own_check_links(dir, false));
    found.has_run = file_exists(arena_printf(f->a, "%s/log.jsonl", dir));
    if (!file_exists(found.profile)) found.profile = NULL;
    bool is_sheet = false;
    if (file_exists(found.bench)) TRY(sheet_is(found.bench, &is_sheet));
    if (!is_sheet) found.bench = NULL;
    *ret = found.has_run || found.profile;
    if (!*ret && !found.bench) return ST_OK;
    if (!found.has_run && found.profile) found.name = last_word(dir, f->a);
    add_found(f, found);
    return ST_OK;
}

static enum status add_dirs_in(struct finding *f, const char *folder)
{
    struct dirent **entry;
    enum status st = ST_OK;
    bool found;
    int n = scandir(folder, &entry, NULL, alphasort);
    if (n < 0) return fail(ST_IO, "%s: %s", folder, strerror(errno));
    for (int i = 0; i < n; i++) {
        if (entry[i]->d_name[0] != '.' && st == ST_OK)
            st = add_dir(f, arena_printf(f->a, "%s/%s", folder, entry[i]->d_name), &found);
        free(entry[i]);
    }
    free(entry);
    return st;
}

/* Adds what a word names. A folder of runs, as `strobe compare` or a suite writes it, stands for
 * its runs in order of their names. */
static enum status add_word(struct finding *f, char *word)
{
    if (!file_exists(word)) {
        add_found(f,
                  (struct found){.dir = word, .has_run = true}); /* runs_read reports the error */
        return ST_OK;
    }
    if (!file_is_dir(word)) {
        add_found(f, file_found(word, f->a));
        return ST_OK;
    }
    int before = f->n;
    bool found;
    TRY(add_dir(f, word, &found));
    if (found) return ST_OK;
    TRY(add_dirs_in(f, word));
    if (f->n > before) return ST_OK;
    return fail(ST_IO,
                "%s has no log.jsonl, profile.json or bench.json: name a folder that strobe wrote",
                word);
}

static enum status read_runs(const struct finding *f, struct subjects *s, struct arena *a)
{
    char **dir = ARENA_NEW(a, char *, f->n + 1);
    for (int i = 0; i < f->n; i++)
        if (f->found[i].has_run) dir[s->runs++] = f->found[i].dir;
    return s->runs ? runs_read(dir, s->runs, a, &s->run) : ST_OK;
}

static const char *name_of(const struct finding *f, int i)
{
    for (int k = 0; k < f->n; k++)
        if (k != i && f->found[k].name && strcmp(f->found[k].name, f->found[i].name) == 0)
            return f->found[i].profile;
    return f->found[i].name;
}

static enum status read_profiles(const struct finding *f, struct subjects *s, struct arena *a)
{
    struct profile_file *all = ARENA_NEW(a, struct profile_file, f->n + 1);
    int run = 0;
    for (int i = 0; i < f->n; i++) {
        const struct found *x = &f->found[i];
        int of = x->has_run ? run++ : -1;
        if (!x->profile) continue;
        struct profile_file *p = &all[s->profiles.n++];
        TRY(profile_file_read(x->profile, of >= 0 ? s->run[of].name : name_of(f, i), a, p));
        p->run = of;
    }
    peaks_raise(all, s->profiles.n, a);
    s->profiles.profile = all;
    return ST_OK;
}

/* Whether an earlier word names the same file or folder. */
static bool named_before(char *const *words, int i)
{
    char one[PATH_MAX], other[PATH_MAX];
    if (!realpath(words[i], one)) return false;
    for (int k = 0; k < i; k++)
        if (realpath(words[k], other) && !strcmp(one, other)) return true;
    return false;
}

static enum status read_sheets(const struct finding *f, struct subjects *s, struct arena *a)
{
    s->sheet = ARENA_NEW(a, struct sheet, f->n + 1);
    for (int i = 0; i < f->n; i++)
        if (f->found[i].bench) TRY(sheet_read(f->found[i].bench, a, &s->sheet[s->sheets++]));
    return ST_OK;
}

/* Whether this is the result of a suite in the folder of its runs, where the page goes. */
static bool holds_another(const struct finding *f, int i)
{
    const struct found *x = &f->found[i];
    for (int k = 0; k < f->n && !x->has_run && !x->profile; k++)
        if (k != i && strcmp(parent_of(f->found[k].dir, f->a), x->dir) == 0) return true;
    return false;
}

/* A page of an earlier report, which a pattern of the shell names beside the runs. */
static bool is_page(const char *word)
{
    size_t n = strlen(word);
    return n > 5 && !strcmp(word + n - 5, ".html") && file_exists(word) && !file_is_dir(word);
}

enum status subjects_read(char *const *words, int n, struct arena *a, struct subjects *ret)
{
    struct finding f = {.a = a};
    struct subjects s = {0};
    for (int i = 0; i < n; i++) {
        if (is_page(words[i]))
            log_info("%s is a page and left out", words[i]);
        else if (!named_before(words, i))
            TRY(add_word(&f, words[i]));
    }
    if (!f.n) return fail(ST_USAGE, "there are only pages; name a run, a profile or a result");
    s.dir = ARENA_NEW(a, char *, f.n + 1);
    for (int i = 0; i < f.n; i++)
        if (!holds_another(&f, i)) s.dir[s.dirs++] = f.found[i].dir;
    s.first_run = f.found[0].has_run;
    s.first_profile = f.found[0].profile != NULL;
    TRY(read_runs(&f, &s, a));
    TRY(read_profiles(&f, &s, a));
    s.profiles.word = words;
    s.profiles.words = n;
    TRY(read_sheets(&f, &s, a));
    *ret = s;
    return ST_OK;
}

const char *subjects_page_path(const struct subjects *s, struct arena *a)
{
    const char *folder = s->dirs == 1 ? s->dir[0] : parent_of(s->dir[0], a);
    for (int i = 1; i < s->dirs; i++)
        if (strcmp(parent_of(s->dir[i], a), folder) != 0) folder = ".";
    return strcmp(folder, ".") == 0 ? "report.html" : arena_printf(a, "%s/report.html", folder);
}
