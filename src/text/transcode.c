#include "text/transcode.h"

#include "base/file.h"
#include "base/heap.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/encode.h"
#include "text/encoder.h"
#include "text/stream.h"

#include <stdlib.h>
#include <string.h>

struct transcoding {
    const struct transcode *t;
    struct bpe_long *bpe_long;
    int64_t read, lines;
    bool begun; /* an id was written, so the next id needs a blank before it */
};

/* --- input and output ------------------------------------------------------------------------- */

static enum status read_some(void *user, char *ret, int64_t most, int64_t *ret_bytes)
{
    struct transcoding *x = user;
    TRY(interrupt_wait(x->t->in));
    TRY(file_read_next(x->t->in, x->t->in_name, ret, most, ret_bytes));
    x->read += *ret_bytes;
    if (x->t->each) x->t->each(x->t->user, x->read);
    return ST_OK;
}

static enum status write_all(const struct transcode *t, const char *bytes, int64_t n)
{
    int64_t done;
    return file_append(t->out, t->out_name, bytes, n, &done);
}

static enum status pass(void *user, const struct stream_unit *u)
{
    struct transcoding *x = user;
    /* Each word begins with a blank; skips the blank of the very first word. */
    int64_t skip =
        x->t->form == FORM_WORDS && !x->begun && u->made[0].len && u->made[0].data[0] == ' ';
    x->begun |= u->made[0].len > 0;
    return write_all(x->t, str_text(u->made) + skip, u->made[0].len - skip);
}

static int64_t cut_lines(void *user, const char *text, int64_t bytes, struct stream_unit *u)
{
    struct transcoding *x = user;
    const char *last = memrchr(text, '\n', (size_t)bytes);
    int64_t cut = last ? last + 1 - text : u->ends ? bytes : 0;
    u->number = x->lines;
    for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + cut - at))); at++)
        x->lines++;
    return cut;
}

/* Calls `line` for each nonempty line of a unit. */
static enum status each_line(const struct stream_unit *u, void *user,
                             enum status (*line)(void *user, const json_t *root, struct str *made))
{
    int64_t number = u->number;
    for (int64_t at = 0; at < u->bytes;) {
        const char *begin = u->text + at, *end = memchr(begin, '\n', (size_t)(u->bytes - at));
        int64_t n = end ? end - begin : u->bytes - at;
        json_error_t e;
        at += n + 1;
        number++;
        if (n == 0 || (n == 1 && *begin == '\r')) continue;
        json_t *root = json_loadb(begin, (size_t)n, JSON_ALLOW_NUL, &e);
        if (!root) return fail(ST_FORMAT, "line %lld is not JSON: %s", (long long)number, e.text);
        enum status st = line(user, root, (struct str *)u->made);
        json_decref(root);
        if (st != ST_OK) return fail_in(st, "line %lld", (long long)number);
    }
    return ST_OK;
}

/* --- to ids ----------------------------------------------------------------------------------- */

struct worker {
    struct encode encode;
    struct str text, ids; /* the text and the ids of one document */
};

static void *open_worker(void *user)
{
    const struct transcoding *x = user;
    struct worker *w = HEAP_NEW(struct worker, 1);
    encode_open(&w->encode, x->t->tokenizer, x->bpe_long, x->t->special, ENCODER_CACHE);
    return w;
}

static void close_worker(void *worker)
{
    struct worker *w = worker;
    encode_close(&w->encode);
    str_release(&w->text);
    str_release(&w->ids);
    free(w);
}

enum { ID_DIGITS = 10 };

static int64_t write_id(uint32_t id, char *ret)
{
    char digits[ID_DIGITS];
    int at = ID_DIGITS;
    do digits[--at] = (char)('0' + id % 10);
    while (id /= 10);
    memcpy(ret, digits + at, (size_t)(ID_DIGITS - at));
    return ID_DIGITS - at;
}

/* The ids of a document, each after a blank. */
static void append_words(const struct worker *w, struct str *made)
{
    int64_t n = w->ids.len / bpe_id_bytes(&w->encode.t->bpe);
    char *begin = str_reserve(made, n * (ID_DIGITS + 1)), *at = begin;
    for (int64_t i = 0; i < n; i++) {
        *at++ = ' ';
        at += write_id(encode_id(w->encode.t, &w->ids, i), at);
    }
    made->len += at - begin;
}

static void append_list(const struct worker *w, struct str *made)
{
    int64_t n = w->ids.len / bpe_id_bytes(&w->encode.t->bpe);
    char *begin = str_reserve(made, n * (ID_DIGITS + 2)), *at = begin;
    for (int64_t i = 0; i < n; i++) {
        if (i) {
            *at++ = ',';
            *at++ = ' ';
        }
        at += write_id(encode_id(w->encode.t, &w->ids, i), at);
    }
    made->len += at - begin;
}

static enum status encode_line(void *user, const json_t *root, struct str *made)
{
    struct worker *w = user;
    const json_t *text = json_object_get(root, "text");
    if (!json_is_string(text)) return fail(ST_FORMAT, "there is no text in \"text\"");
    int64_t n = (int64_t)json_string_length(text);
    static const char padding[ENCODER_PADDING];
    w->text.len = w->ids.len = 0;
    str_append_bytes(&w->text, json_string_value(text), n);
    str_append_bytes(&w->text, padding, sizeof padding);
    encode_append(&w->encode, w->text.data, n, &w->ids);
    str_append(made, "{\"ids\": [");
    append_list(w, made);
    str_append(made, "]}\n");
    return ST_OK;
}

static enum status encode_unit(void *user, void *worker, struct stream_unit *u)
{
    const struct transcoding *x = user;
    struct worker *w = worker;
    if (x->t->form == FORM_JSONL) return each_line(u, w, encode_line);
    if (x->t->form == FORM_RAW) {
        encode_append(&w->encode, u->text, u->bytes, u->made);
        return ST_OK;
    }
    w->ids.len = 0;
    encode_append(&w->encode, u->text, u->bytes, &w->ids);
    append_words(w, u->made);
    return ST_OK;
}

static int64_t cut_text(void *user, const char *text, int64_t bytes, struct stream_unit *u)
{
    const struct transcoding *x = user;
    return u->ends ? bytes : encode_cut(x->t->tokenizer, x->t->special, text, bytes);
}

static enum status run_stream(struct transcoding *x, struct stream s)
{
    s.name = x->t->in_name;
    s.user = x;
    s.threads = x->t->threads;
    s.read = read_some;
    s.pass = pass;
    enum status st = stream_run(&s);
    return st == ST_FORMAT ? fail_in(st, "%s", x->t->in_name) : st;
}

enum status tokenize(const struct transcode *t)
{
    struct transcoding x = {.t = t, .bpe_long = bpe_long_open(&t->tokenizer->bpe)};
    struct stream s = {.cut = t->form == FORM_JSONL ? cut_lines : cut_text,
                       .work = encode_unit,
                       .open = open_worker,
                       .close = close_worker};
    enum status st = run_stream(&x, s);
    bpe_long_close(x.bpe_long);
    return st == ST_OK && t->form == FORM_WORDS ? write_all(t, "\n", 1) : st;
}

/* --- to text ---------------------------------------------------------------------------------- */

static enum status append_token(const struct transcode *t, int64_t id, struct str *made)
{
    struct token_text text = tokenizer_text(t->tokenizer, id);
    if (!text.length)
        return fail(ST_FORMAT, "%lld is not an id of the vocabulary, which has 0 to %d",
                    (long long)id, t->tokenizer->bpe.ids - 1);
    str_append_bytes(made, text.bytes, text.length);
    return ST_OK;
}

static enum status decode_words(const struct transcode *t, struct stream_unit *u)
{
    for (const char *at = u->text, *end = at + u->bytes; at < end;) {
        if (strchr(" \t\r\n,", *at) && *at) {
            at++;
            continue;
        }
        int64_t id = 0, digits = 0;
        for (; at < end && *at >= '0' && *at <= '9' && digits < 10; digits++, at++)
            id = id * 10 + (*at - '0');
        if (digits == 0 || (at < end && (!strchr(" \t\r\n,", *at) || !*at))) {
            at -= digits;
            return fail(ST_FORMAT, "\"%.*s\" is not an id", (int)min_i64(end - at, 20), at);
        }
        TRY(append_token(t, id, u->made));
    }
    return ST_OK;
}

static enum status decode_raw(const struct transcode *t, struct stream_unit *u)
{
    int id_bytes = bpe_id_bytes(&t->tokenizer->bpe);
    if (u->bytes % id_bytes)
        return fail(ST_FORMAT, "the length is not a multiple of %d bytes", id_bytes);
    for (int64_t at = 0; at < u->bytes; at += id_bytes) {
        uint32_t id = 0;
        memcpy(&id, u->text + at, (size_t)id_bytes);
        TRY(append_token(t, id, u->made));
    }
    return ST_OK;
}

static enum status decode_line(void *user, const json_t *root, struct str *made)
{
    const struct transcode *t = user;
    json_t *ids = json_object_get(root, "ids"), *id;
    struct str text = {}, valid = {};
    enum status st = ST_OK;
    size_t i;
    if (!json_is_array(ids)) return fail(ST_FORMAT, "there is no list of ids in \"ids\"");
    json_array_foreach(ids, i, id) {
        st = json_is_integer(id) ? append_token(t, json_integer_value(id), &text)
                                 : fail(ST_FORMAT, "entry %zu of \"ids\" is not a number", i + 1);
        if (st != ST_OK) break;
    }
    if (st == ST_OK) {
        utf8_append_valid(&valid, str_text(&text), text.len); /* JSON must be valid UTF-8 */
        json_t *line = json_pack("{s:s%}", "text", str_text(&valid), (size_t)valid.len);
        json_print_with(line, JSON_COMPACT, made);
    }
    str_release(&text);
    str_release(&valid);
    return st;
}

static enum status decode_unit(void *user, void *, struct stream_unit *u)
{
    const struct transcode *t = ((const struct transcoding *)user)->t;
    if (t->form == FORM_JSONL) return each_line(u, (void *)t, decode_line);
    return t->form == FORM_RAW ? decode_raw(t, u) : decode_words(t, u);
}

static int64_t cut_ids(void *user, const char *text, int64_t bytes, struct stream_unit *u)
{
    const struct transcoding *x = user;
    if (u->ends) return bytes;
    if (x->t->form == FORM_RAW) return bytes - bytes % bpe_id_bytes(&x->t->tokenizer->bpe);
    while (bytes > 0 && text[bytes - 1] >= '0' && text[bytes - 1] <= '9') bytes--;
    return bytes;
}

enum status detokenize(const struct transcode *t)
{
    struct transcode back = *t;
    struct transcoding x = {.t = &back, .begun = true};
    struct stream s = {.cut = t->form == FORM_JSONL ? cut_lines : cut_ids, .work = decode_unit};
    return run_stream(&x, s);
}
