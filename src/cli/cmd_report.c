#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/str.h"
#include "cli/command.h"
#include "report/compare.h"
#include "report/html.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *html, *csv;
    bool markdown, json;
};

static void print_text(const struct comparison *c, struct arena *a, struct str *s)
{
    if (c->settings) {
        struct table differs = compare_settings_table(c, a);
        table_print_text(&differs, s);
        str_append(s, "\n");
    }
    table_print_text(&c->table, s);
    for (int i = 0; i < c->verdicts; i++) str_printf(s, "%s%s\n", i ? "" : "\n", c->verdict[i]);
    for (int i = 0; i < c->notes; i++) str_printf(s, "%sNote: %s\n", i ? "" : "\n", c->note[i]);
}

static void print_markdown(const struct comparison *c, struct arena *a, struct str *s)
{
    if (c->settings) {
        struct table differs = compare_settings_table(c, a);
        table_print_markdown(&differs, s);
        str_append(s, "\n");
    }
    table_print_markdown(&c->table, s);
    for (int i = 0; i < c->verdicts; i++) str_printf(s, "\n%s\n", c->verdict[i]);
    for (int i = 0; i < c->notes; i++) str_printf(s, "\n> %s\n", c->note[i]);
}

static json_t *texts_json(const char **text, int n)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(array, json_string(text[i]));
    return array;
}

static void print_json(const struct comparison *c, struct arena *a, struct str *s)
{
    struct table differs = compare_settings_table(c, a);
    json_t *object =
        json_pack("{s:i, s:o, s:o, s:o, s:o}", "v", 1, "runs", table_json(&c->table), "differs",
                  table_json(&differs), "verdict", texts_json(c->verdict, c->verdicts), "notes",
                  texts_json(c->note, c->notes));
    char *text = json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
    BUG_IF(!text, "the report is not JSON");
    str_printf(s, "%s\n", text);
    free(text);
    json_decref(object);
}

/* The folder that holds a run; "." where the word has none. */
static const char *parent_of(const char *dir, struct arena *a)
{
    char *parent = arena_strdup(a, dir);
    for (size_t end = strlen(parent); end > 1 && parent[end - 1] == '/'; end--)
        parent[end - 1] = '\0';
    char *slash = strrchr(parent, '/');
    if (!slash) return ".";
    *slash = '\0';
    return *parent ? parent : "/";
}

/* One run: in it. Several: in the folder that holds them all, else here. */
static const char *page_path(char *const *dirs, int n, struct arena *a)
{
    if (n == 1) return arena_printf(a, "%s/report.html", dirs[0]);
    const char *folder = parent_of(dirs[0], a);
    for (int i = 1; i < n; i++)
        if (strcmp(parent_of(dirs[i], a), folder) != 0) folder = ".";
    return strcmp(folder, ".") == 0 ? "report.html" : arena_printf(a, "%s/report.html", folder);
}

static bool holds_run(const char *dir, struct arena *a)
{
    return file_exists(arena_printf(a, "%s/log.jsonl", dir));
}

struct words {
    char **word;
    int words, capacity;
};

static void add_word(struct words *w, char *word, struct arena *a)
{
    ARENA_GROW(a, w->word, w->words, w->capacity);
    w->word[w->words++] = word;
}

/* A folder of runs, as compare makes it, stands for the runs in it, by name. */
static void add_runs(struct words *w, char *dir, struct arena *a)
{
    struct dirent **entry;
    int before = w->words, n = holds_run(dir, a) ? 0 : scandir(dir, &entry, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char *inside = arena_printf(a, "%s/%s", dir, entry[i]->d_name);
        if (entry[i]->d_name[0] != '.' && holds_run(inside, a)) add_word(w, inside, a);
        free(entry[i]);
    }
    if (n > 0) free(entry);
    if (w->words == before) add_word(w, dir, a); /* a run, or what the reader will refuse */
}

static enum status report(char *const *dirs, int n, const struct options *o, struct arena *a,
                          struct str *s)
{
    struct run *runs;
    struct comparison c;
    struct words all = {0};
    for (int i = 0; i < n; i++) add_runs(&all, dirs[i], a);
    TRY(runs_read(all.word, all.words, a, &runs));
    compare_runs(runs, all.words, a, &c);

    if (o->csv) {
        table_print_csv(&c.table, s);
        TRY(file_write(o->csv, s->data, s->len));
        str_clear(s);
    }
    if (o->json)
        print_json(&c, a, s);
    else if (o->markdown)
        print_markdown(&c, a, s);
    else
        print_text(&c, a, s);
    fputs(str_text(s), stdout);
    fflush(stdout);

    const char *path = o->html ? o->html : page_path(all.word, all.words, a);
    TRY(html_write(&c, path, a));
    if (o->csv) log_info("table: %s", o->csv);
    log_info("page: %s (open it in a browser)", path);
    return ST_OK;
}

enum status cmd_report(int argc, char **argv)
{
    struct options o = {0};
    const struct opt table[] = {
        {"html", OPT_TEXT, &o.html, "FILE",
         "write the page here; else RUN/report.html, or beside several runs"},
        {"csv", OPT_TEXT, &o.csv, "FILE", "write the table here as CSV too"},
        {"markdown", OPT_FLAG, &o.markdown, NULL, "print the table as Markdown"},
        {"json", OPT_FLAG, &o.json, NULL, "print the table as JSON"},
        {0},
    };
    TRY(opt_parse(table, &argc, argv, NULL));
    if (argc == 0)
        return fail(ST_USAGE, "name one or more run directories: strobe report runs/NAME ...");
    if (o.json && o.markdown)
        return fail(ST_USAGE, "--json and --markdown exclude each other: leave one out");
    struct arena a = {0};
    struct str s = {0};
    enum status st = report(argv, argc, &o, &a, &s);
    str_release(&s);
    arena_release(&a);
    return st;
}
