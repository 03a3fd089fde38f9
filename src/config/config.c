#include "config/config.h"

#include "base/file.h"
#include "base/str.h"
#include "base/utf8.h"
#include "config/fields.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* SHOWN_KEY: length of the longest key of an included file that a message may quote. */
enum { INCLUDE_DEPTH = 8, FILE_BYTES_MOST = 1 << 20, SHOWN_KEY = 32 };

static bool ends_at(const char *in, const char *text, char quote, bool is_override)
{
    if (quote) return *in == quote;
    bool comment = *in == '#' && (in == text || isspace((unsigned char)in[-1]));
    return !*in || (comment && !is_override);
}

/* Removes quotes and resolves escapes, in place. A value without quotes ends at a '#' that follows
 * white space, unless `is_override` is set (an override). */
static enum status unquote(const char *key, char *text, bool is_override)
{
    char quote = *text == '"' || *text == '\'' ? *text : '\0';
    char *in = text + (quote != '\0'), *out = text, *last = text;
    for (; !ends_at(in, text, quote, is_override); in++) {
        if (!*in)
            return fail(ST_USAGE, "%s: the closing %c is missing; write \\%c for a literal quote",
                        key, quote, quote);
        char c = *in;
        if (c == '\\') {
            static const char from[] = "ntr\\\"'#", to[] = "\n\t\r\\\"'#";
            const char *escape = *++in ? strchr(from, *in) : NULL;
            if (!escape)
                return fail(ST_USAGE, "%s: \\%s is not an escape; write \\\\ for a backslash", key,
                            *in ? (char[]){*in, '\0'} : "");
            c = to[escape - from];
            *out++ = c;
            last = out; /* white space written as an escape is kept at the end */
            continue;
        }
        *out++ = c;
        if (quote || is_override || !isspace((unsigned char)c)) last = out;
    }
    if (quote) {
        const char *rest = in + 1;
        while (isspace((unsigned char)*rest)) rest++;
        if (*rest && (is_override || *rest != '#'))
            return fail(ST_USAGE,
                        "%s: nothing may follow the closing %c; write \\%c for a literal quote",
                        key, quote, quote);
    }
    *(quote ? out : last) = '\0';
    return ST_OK;
}

static enum status fail_unknown(const char *key, int64_t length)
{
    const struct field *nearest = field_nearest(key, length);
    if (nearest)
        return fail(ST_USAGE, "there is no key %.*s; the nearest is %s", (int)length, key,
                    nearest->key);
    return fail(ST_USAGE, "there is no key %.*s; `strobe config --reference` lists all keys",
                (int)length, key);
}

/* Where a line comes from. A file of nanoGPT is Python: text has quotes there. */
enum source { SOURCE_FILE, SOURCE_PYTHON, SOURCE_OVERRIDE };

/* If `text` is a key of the same kind as `f` that has a number (lr_decay_iters = max_iters), or in
 * Python text, returns the value of that key; else returns `text`. */
static const char *value_of_key(const struct field *f, const struct config *c, const char *text,
                                enum source source, struct arena *a)
{
    const struct field *other = field_find(text, (int64_t)strlen(text));
    struct str s = {0};
    bool has_value = f->kind == FIELD_INT || f->kind == FIELD_REAL ||
                     (f->kind == FIELD_TEXT && source == SOURCE_PYTHON);
    if (!other || other->kind != f->kind || !has_value) return text;
    field_print(other, c, &s);
    if (strcmp(str_text(&s), "auto") != 0) text = arena_strdup(a, str_text(&s));
    str_release(&s);
    return text;
}

/* `value` is as the user wrote it: with quotes, escapes and a trailing comment. */
static enum status key_set(struct config *c, const char *key, int64_t key_length, const char *value,
                           enum source source, struct arena *a)
{
    const struct field *f = field_find(key, key_length);
    bool is_override = source == SOURCE_OVERRIDE, quoted = *value == '"' || *value == '\'';
    if (!f && nanogpt_ignores(key, key_length, &c->ignored)) return ST_OK;
    if (!f && !nanogpt_is_key(key, key_length)) return fail_unknown(key, key_length);
    char *text = arena_strdup(a, value);
    const char *taken = text;
    TRY(unquote(f ? f->key : arena_printf(a, "%.*s", (int)key_length, key), text, is_override));
    TRY(nanogpt_translate(key, key_length, &taken));
    /* As in nanoGPT, only a file has names of keys; the order of words on the command line counts
     * for nothing. */
    const char *named = taken;
    if (f && !is_override && !quoted) taken = value_of_key(f, c, named, source, a);
    if (f && f->kind == FIELD_TEXT && source == SOURCE_PYTHON && !quoted && taken == named)
        return fail(ST_USAGE,
                    "%s: text needs quotes in a .py file, and no expression is evaluated but names "
                    "of keys and products of whole numbers",
                    f->key);
    return f ? field_set(f, c, taken, a) : ST_OK;
}

void config_init(struct config *c)
{
    *c = (struct config){0};
    for (const struct field *f = fields; f->key; f++) {
        enum status st = field_set(f, c, f->initial, NULL);
        BUG_IF(st != ST_OK, "default of a key: %s", fail_message());
    }
}

struct reader {
    struct config *config;
    const struct reader *from; /* the file that includes this one; NULL: the first file */
    struct stat file;          /* not set for a text in memory */
    bool outside;              /* neither in the folder of the first file nor below it */
    const char *path;
    int line;
    struct arena *arena;
    const char *(*find)(const char *name); /* returns texts in memory; NULL: read files */
    const char *text;                      /* the text itself; NULL: find or read it */
    int depth, entries;
    int seen[FIELD_MOST]; /* the line on which each key was set */
};

static enum status read_file(struct reader *r);

/* True if `path`, with links resolved, is in the folder of the file `first` or below it. False if
 * that folder is the root, which contains every file. */
static bool is_inside(const char *path, const char *first)
{
    char full[PATH_MAX], folder[PATH_MAX];
    if (!realpath(path, full) || !realpath(first, folder)) return false;
    size_t n = (size_t)(strrchr(folder, '/') - folder);
    return n > 0 && !strncmp(full, folder, n) && full[n] == '/';
}

/* True if a message may quote a line. A configuration may include a file of secrets, by mistake or
 * malice, and users pass error messages on. So a message may quote a line of an included file only
 * if the file is in the folder of the first file or below it and the line begins like a key; else
 * the message has at most the name of a key of the table. */
static bool may_show(const struct reader *r, const char *key, int64_t length)
{
    if (!r->from) return true;
    if (r->outside || length < 1 || length > SHOWN_KEY) return false;
    for (int64_t i = 0; i < length; i++)
        if (!islower((unsigned char)key[i]) && !isdigit((unsigned char)key[i]) && key[i] != '_')
            return false;
    return true;
}

static enum status check_file(struct reader *r)
{
    if (stat(r->path, &r->file) != 0) return ST_OK; /* opening it reports the error */
    if (r->from && !S_ISREG(r->file.st_mode))
        return fail(ST_USAGE, "%s is not a regular file, so it cannot be included", r->path);
    if (S_ISREG(r->file.st_mode) && r->file.st_size > FILE_BYTES_MOST)
        return fail(ST_FORMAT, "%s has %lld bytes; a configuration has at most %d", r->path,
                    (long long)r->file.st_size, FILE_BYTES_MOST);
    return ST_OK;
}

static bool is_same(const struct reader *a, const struct reader *b)
{
    if (a->find) return !strcmp(a->path, b->path);
    return a->file.st_ino == b->file.st_ino && a->file.st_dev == b->file.st_dev;
}

static enum status check_include(struct reader *r)
{
    const struct reader *first = r->from;
    if (!r->find) TRY(check_file(r));
    for (const struct reader *up = r->from; up; first = up, up = up->from)
        if (is_same(r, up)) return fail(ST_USAGE, "%s includes itself", up->path);
    if (r->depth > INCLUDE_DEPTH)
        return fail(ST_USAGE, "includes are nested more than %d deep", INCLUDE_DEPTH);
    r->outside = !r->find && !is_inside(r->path, first->path);
    return ST_OK;
}

/* The keys of a file override the keys of the file that it includes, so the include comes first. */
static enum status read_include(struct reader *r, const char *value)
{
    if (r->entries > 0)
        return fail(ST_USAGE, "include must come before all keys of a file, and only once");
    if (r->text) return fail(ST_USAGE, "a configuration that is kept in a file includes no other");
    char *name = arena_strdup(r->arena, value);
    TRY(unquote("include", name, false));
    if (!*name) return fail(ST_USAGE, "include needs the name of a file");
    const char *slash = strrchr(r->path, '/');
    if (*name != '/' && slash)
        name = arena_printf(r->arena, "%.*s/%s", (int)(slash - r->path), r->path, name);
    struct reader inner = {.config = r->config,
                           .from = r,
                           .path = name,
                           .arena = r->arena,
                           .find = r->find,
                           .depth = r->depth + 1};
    TRY(check_include(&inner));
    return read_file(&inner);
}

static bool is_python(const char *path)
{
    size_t n = strlen(path);
    return n > 3 && !strcmp(path + n - 3, ".py");
}

static enum status read_key(struct reader *r, const char *key, int64_t length, const char *value)
{
    const struct field *f = field_find(key, length);
    enum status st = key_set(r->config, key, length, value,
                             is_python(r->path) ? SOURCE_PYTHON : SOURCE_FILE, r->arena);
    if (st != ST_OK && !may_show(r, key, length))
        return f ? fail(st,
                        "%s cannot have that value; `strobe config --reference` lists the "
                        "values",
                        f->key)
                 : fail(st,
                        "this is not a line of a configuration, which has the form `key = value`");
    TRY(st);
    if (!f) return ST_OK;
    int *seen = &r->seen[f - fields];
    if (*seen) return fail(ST_USAGE, "%s is set twice, first on line %d", f->key, *seen);
    *seen = r->line;
    return ST_OK;
}

/* In nanoGPT's files, for names of runs: `import time`. */
static bool is_import(const char *line)
{
    static const char import[] = "import time";
    if (strncmp(line, import, sizeof import - 1) != 0) return false;
    line += sizeof import - 1;
    while (isspace((unsigned char)*line)) line++;
    return !*line || *line == '#';
}

static enum status read_line(struct reader *r, char *line)
{
    char *key = line;
    while (isspace((unsigned char)*key)) key++;
    if (!*key || *key == '#') return ST_OK;
    if (is_import(key)) return ST_OK;
    char *equals = strchr(key, '=');
    char *end = equals;
    while (end && end > key && isspace((unsigned char)end[-1])) end--;
    if (!equals || end == key)
        return r->from ? fail(ST_USAGE, "expected `key = value`")
                       : fail(ST_USAGE, "expected `key = value`, found `%s`", key);
    char *value = equals + 1;
    while (isspace((unsigned char)*value)) value++;

    int64_t length = end - key;
    if (length == 7 && !memcmp(key, "include", 7)) {
        TRY(read_include(r, value));
    } else {
        TRY(read_key(r, key, length, value));
    }
    r->entries++;
    return ST_OK;
}

static enum status load(const struct reader *r, char **ret_text)
{
    int64_t size;
    if (r->text) {
        *ret_text = arena_strdup(r->arena, r->text);
        return ST_OK;
    }
    if (r->find) {
        const char *text = r->find(r->path);
        if (!text) return fail(ST_IO, "there is no built-in file %s", r->path);
        *ret_text = arena_strdup(r->arena, text);
        return ST_OK;
    }
    TRY(file_read(r->path, r->arena, ret_text, &size));
    if ((int64_t)strlen(*ret_text) != size)
        return fail(ST_FORMAT, "%s: is not a text file", r->path);
    return ST_OK;
}

static enum status read_file(struct reader *r)
{
    char *text;
    TRY(load(r, &text));
    if (!strncmp(text, BYTE_ORDER_MARK, 3)) text += 3;
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        r->line++;
        enum status st = read_line(r, line);
        if (st != ST_OK) return fail_in(st, "%s:%d", r->path, r->line);
    }
    return ST_OK;
}

enum status config_read(struct config *c, const char *path, struct arena *a)
{
    struct reader r = {.config = c, .path = path, .arena = a};
    TRY(check_file(&r));
    return read_file(&r);
}

enum status config_read_text(struct config *c, const char *name,
                             const char *(*find)(const char *name), struct arena *a)
{
    struct reader r = {.config = c, .path = name, .arena = a, .find = find};
    return read_file(&r);
}

enum status config_read_memory(struct config *c, const char *name, const char *text,
                               struct arena *a)
{
    struct reader r = {.config = c, .path = name, .arena = a, .text = text};
    return read_file(&r);
}

enum status config_set(struct config *c, const char *text, struct arena *a)
{
    const char *key = text + (strncmp(text, "--", 2) == 0 ? 2 : 0);
    const char *equals = strchr(key, '=');
    int64_t length = equals ? equals - key : (int64_t)strlen(key);
    const char *value = equals ? equals + 1 : "true";
    const struct field *f = field_find(key, length);
    if (f && !equals && !field_is_switch(f))
        return fail(ST_USAGE, "--%s needs a value: --%s=VALUE", f->key, f->key);
    return key_set(c, key, length, value, SOURCE_OVERRIDE, a);
}

bool config_resumes(const struct config *c)
{
    return !strcmp(c->train.init_from, INIT_RESUME);
}

const char *config_origin(const struct config *c)
{
    bool random = !strcmp(c->train.init_from, INIT_SCRATCH);
    return random || config_resumes(c) ? NULL : c->train.init_from;
}

bool config_is_override(const char *text)
{
    return text[0] == '-' || text[strcspn(text, "=/")] == '=';
}

bool config_is_key(const char *text)
{
    int64_t length = (int64_t)strcspn(text, "=") - 2;
    return strncmp(text, "--", 2) == 0 &&
           (field_find(text + 2, length) || nanogpt_is_key(text + 2, length));
}

bool config_takes(const char *key, const char *value)
{
    if (strncmp(key, "--", 2) != 0 || strchr(key, '=') || !value || value[0] == '-') return false;
    int64_t length = (int64_t)strlen(key + 2);
    const struct field *f = field_find(key + 2, length);
    if (f && !field_is_switch(f)) return true;
    size_t n = strcspn(value, ","); /* a list, as --flash false,true */
    if (n < 4) return false;
    return (f || nanogpt_is_key(key + 2, length)) &&
           (!strncasecmp(value, "true", n) || !strncasecmp(value, "false", n));
}

static enum status check_units(const struct config *c)
{
    if (c->ranks.overlap != OVERLAP_NONE && c->ranks.overlap != OVERLAP_BUCKET)
        return fail(ST_USAGE, "zero=3 needs overlap=none or overlap=bucket: it gathers weights and "
                              "sums gradients block by block");
    if (c->plan.dtype == PRECISION_FLOAT8)
        return fail(ST_UNSUPPORTED, "zero=3 does not know dtype=float8; use dtype=bfloat16");
    if (c->ranks.reduce_dtype == REDUCE_BFLOAT16)
        return fail(ST_UNSUPPORTED, "zero=3 sums gradients in float32 alone; use "
                                    "reduce_dtype=float32, or zero=1");
    if (c->plan.pack_weights == PACKING_TRUE)
        return fail(ST_USAGE, "pack_weights=true: with zero=3 a rank has no weights to pack; leave "
                              "it at auto");
    return ST_OK;
}

enum status config_check(const struct config *c)
{
    const struct config_model *m = &c->model;
    const struct config_train *t = &c->train;
    const struct config_plan *p = &c->plan;
    if (!*t->out_dir || !*c->data.data_dir)
        return fail(ST_USAGE, "%s is empty; set it to a folder, or remove the key",
                    *t->out_dir ? "data_dir" : "out_dir");
    TRY(file_check_place("out_dir", t->out_dir));
    TRY(file_check_place("init_from", t->init_from));
    if (!*t->init_from)
        return fail(ST_USAGE, "init_from is empty; the value for random weights is scratch");
    TRY(file_check_place("data_dir", c->data.data_dir));
    if (c->data.batch_size * m->block_size > INT32_MAX)
        return fail(ST_USAGE,
                    "batch_size = %lld times block_size = %lld is too many tokens for one "
                    "micro-batch; lower one of them and raise gradient_accumulation_steps",
                    (long long)c->data.batch_size, (long long)m->block_size);
    if (t->decay_lr && t->warmup_iters > t->lr_decay_iters)
        return fail(ST_USAGE,
                    "warmup_iters = %lld is greater than lr_decay_iters = %lld; lower the first or "
                    "raise the second",
                    (long long)t->warmup_iters, (long long)t->lr_decay_iters);
    if (t->decay_lr && t->min_lr > t->learning_rate)
        return fail(ST_USAGE,
                    "min_lr = %g is greater than learning_rate = %g; lower it, or set "
                    "decay_lr=false",
                    t->min_lr, t->learning_rate);
    if (t->gradient_accumulation_steps % c->ranks.count)
        return fail(ST_USAGE,
                    "gradient_accumulation_steps = %lld micro-batches cannot be dealt to ranks = "
                    "%lld; set it to a multiple of the ranks",
                    (long long)t->gradient_accumulation_steps, (long long)c->ranks.count);
    bool at_once = c->ranks.overlap == OVERLAP_NONE || c->ranks.overlap == OVERLAP_PARAMETER;
    if (c->ranks.zero == 1 && at_once)
        return fail(ST_USAGE,
                    "zero=1 needs overlap=flat or overlap=bucket: a shard is a part of a bucket, "
                    "not of a parameter");
    if (c->ranks.zero == 3) TRY(check_units(c));
    int64_t blocks = (int64_t)p->recompute - RECOMPUTE_BLOCK + 1;
    if (blocks > 1 && blocks > m->n_layer)
        return fail(ST_USAGE, "recompute=block:%lld exceeds n_layer = %lld; lower it",
                    (long long)blocks, (long long)m->n_layer);
    if (p->dtype == PRECISION_TFLOAT32 && p->device == DEVICE_CPU)
        return fail(ST_UNSUPPORTED, "dtype=tfloat32 needs a CUDA device; add --device=cuda, or "
                                    "use dtype=float32");
    if (p->pack_weights == PACKING_TRUE && p->fusion != FUSION_FULL)
        return fail(ST_USAGE, "pack_weights=true needs fusion=full; leave it at auto, or add "
                              "--fusion=full");
    if (p->replay == REPLAY_TRUE && p->device == DEVICE_CPU)
        return fail(ST_UNSUPPORTED,
                    "replay=true needs a CUDA device; add --device=cuda, or use replay=false");
    return ST_OK;
}
