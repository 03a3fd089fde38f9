#include "data/corpus.h"

#include "base/file.h"
#include "base/heap.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "data/corpus_input.h"
#include "data/kind.h"
#include "data/meta.h"
#include "text/bpe_long.h"
#include "text/encode.h"
#include "text/encoder.h"
#include "text/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)SPLIT_COUNT <= (int)STREAM_OUTPUTS, "a unit has an output for each split");

struct output {
    struct file_writer file;
    bool is_open;
    struct hash *hash;
    int64_t bytes;
};

struct writing {
    const struct corpus *c;
    struct arena *a;
    struct corpus_input input;
    struct bpe_long *bpe_long;
    int id_bytes;
    int64_t end_id; /* the id of <|endoftext|> */
    /* If there is only one document: where its validation part begins, the number of bytes that
     * were read, and whether the validation part is being read. cut = 0: several documents. */
    int64_t cut, position;
    bool past_cut;
    int64_t begun;          /* number of documents before the next unit */
    int64_t *first_of_file; /* the number of the first document of each file */
    int64_t documents;
    struct output out[SPLIT_COUNT];
};

/* --- reading ---------------------------------------------------------------------------------- */

static bool is_single(const struct writing *w)
{
    return w->input.files == 1 && !w->input.file[0].jsonl;
}

/* If there is only one document, it is read as two parts: before the cut and after it. */
static enum status read_some(void *user, char *ret, int64_t most, int64_t *ret_bytes)
{
    struct writing *w = user;
    if (w->cut && !w->past_cut) most = min_i64(most, w->cut - w->position);
    *ret_bytes = 0;
    if (most > 0) TRY(corpus_input_read(&w->input, ret, most, ret_bytes));
    w->position += *ret_bytes;
    if (w->c->each) w->c->each(w->c->user, corpus_input_done(&w->input), w->input.bytes);
    return ST_OK;
}

static enum status next_part(void *user, bool *ret)
{
    struct writing *w = user;
    *ret = w->cut && !w->past_cut;
    if (*ret) w->past_cut = true;
    if (w->cut) return ST_OK;
    TRY(corpus_input_next(&w->input, ret));
    if (*ret) w->first_of_file[w->input.at] = w->begun;
    return ST_OK;
}

/* In a .jsonl file each line is a document; any other file is one document. */
static int64_t cut_unit(void *user, const char *text, int64_t bytes, struct stream_unit *u)
{
    struct writing *w = user;
    int64_t cut = bytes;
    u->kind = w->input.at;
    u->number = w->cut ? w->past_cut : w->begun;
    if (w->input.file[w->input.at].jsonl) {
        const char *last = memrchr(text, '\n', (size_t)bytes);
        if (!u->ends || last) cut = last ? last + 1 - text : 0;
        for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + cut - at))); at++)
            w->begun++;
        if (u->ends && !last && bytes > 0) w->begun++;
        return cut;
    }
    if (!u->ends) return encode_cut(w->c->tokenizer, w->c->special, text, bytes);
    if (!w->cut || w->past_cut) w->begun++;
    return bytes;
}

/* If there is only one document, finds the byte at which its last tenth, by characters, begins. */
static enum status find_cut(struct writing *w)
{
    enum { BLOCK = 1 << 16 };
    static _Thread_local char block[BLOCK];
    int64_t characters = 0, seen = 0, at = 0, n;
    do {
        TRY(corpus_input_read(&w->input, block, BLOCK, &n));
        for (int64_t i = 0; i < n; i++) characters += utf8_begins(block[i]);
    } while (n > 0);
    int64_t wanted = (int64_t)(0.9 * (double)characters);
    TRY(corpus_input_rewind(&w->input));
    for (bool found = false; !found;) {
        TRY(corpus_input_read(&w->input, block, BLOCK, &n));
        int64_t i = 0;
        for (; i < n && !found; i++) {
            found = seen == wanted && utf8_begins(block[i]);
            seen += !found && utf8_begins(block[i]);
        }
        at += found ? i - 1 : n;
        if (n == 0) break;
    }
    if (wanted == 0 || at == 0)
        return fail(ST_USAGE, "%s is too short to split into training and validation",
                    w->input.file[0].path);
    w->cut = at;
    return corpus_input_rewind(&w->input);
}

/* --- encoding --------------------------------------------------------------------------------- */

struct worker {
    struct encode encode;
    struct str text;
};

static void *open_worker(void *user)
{
    const struct writing *w = user;
    struct worker *x = HEAP_NEW(struct worker, 1);
    encode_open(&x->encode, w->c->tokenizer, w->bpe_long, w->c->special, ENCODER_CACHE);
    return x;
}

static void close_worker(void *worker)
{
    struct worker *x = worker;
    encode_close(&x->encode);
    str_release(&x->text);
    free(x);
}

static enum split split_of(const struct writing *w, int64_t document)
{
    float x = rng_uniform(w->c->seed, RNG_DOCUMENT, 0, (uint64_t)document);
    return (double)x < w->c->val_share ? SPLIT_VAL : SPLIT_TRAIN;
}

static void end_document(const struct writing *w, struct stream_unit *u, enum split split)
{
    str_append_bytes(&u->made[split], &w->end_id, w->id_bytes);
    u->count++;
}

static enum status encode_line(const struct writing *w, struct worker *x, const char *line,
                               int64_t bytes, int64_t document, struct stream_unit *u)
{
    static const char padding[ENCODER_PADDING];
    json_error_t e;
    json_t *root = json_loadb(line, (size_t)bytes, JSON_ALLOW_NUL, &e);
    json_t *text = json_object_get(root, "text");
    long long number = document - w->first_of_file[u->kind] + 1;
    const char *path = w->input.file[u->kind].path;
    enum status st = ST_OK;
    if (!root) {
        st = fail(ST_FORMAT, "%s: line %lld is not JSON: %s", path, number, e.text);
    } else if (!json_is_string(text)) {
        st = fail(ST_FORMAT, "%s: line %lld has no text in \"text\"", path, number);
    } else {
        int64_t n = (int64_t)json_string_length(text);
        enum split split = split_of(w, document);
        x->text.len = 0;
        str_append_bytes(&x->text, json_string_value(text), n);
        str_append_bytes(&x->text, padding, sizeof padding);
        encode_append(&x->encode, x->text.data, n, &u->made[split]);
        end_document(w, u, split);
    }
    json_decref(root);
    return st;
}

static enum status encode_lines(const struct writing *w, struct worker *x, struct stream_unit *u)
{
    int64_t document = u->number;
    for (int64_t at = 0; at < u->bytes; document++) {
        const char *line = u->text + at, *end = memchr(line, '\n', (size_t)(u->bytes - at));
        int64_t n = end ? end - line : u->bytes - at;
        at += n + 1;
        if (n == 0 || (n == 1 && *line == '\r')) continue;
        TRY(encode_line(w, x, line, n, document, u));
    }
    return ST_OK;
}

static enum status encode_unit(void *user, void *worker, struct stream_unit *u)
{
    const struct writing *w = user;
    struct worker *x = worker;
    u->count = 0;
    if (w->input.file[u->kind].jsonl) return encode_lines(w, x, u);
    if (w->cut) {
        encode_append(&x->encode, u->text, u->bytes, &u->made[u->number ? SPLIT_VAL : SPLIT_TRAIN]);
        return ST_OK;
    }
    enum split split = split_of(w, u->number);
    encode_append(&x->encode, u->text, u->bytes, &u->made[split]);
    if (u->ends) end_document(w, u, split);
    return ST_OK;
}

/* --- writing ---------------------------------------------------------------------------------- */

static enum status pass(void *user, const struct stream_unit *u)
{
    struct writing *w = user;
    for (int s = 0; s < SPLIT_COUNT; s++) {
        const struct str *made = &u->made[s];
        if (made->len == 0) continue;
        file_writer_add(&w->out[s].file, made->data, made->len);
        if (w->out[s].file.error)
            return file_fail(
                arena_printf(w->a, "%s/%s/%s.bin", w->c->data_dir, w->c->name, split_name(s)),
                w->out[s].file.error);
        hash_add(w->out[s].hash, made->data, made->len);
        w->out[s].bytes += made->len;
    }
    w->documents += u->count;
    return ST_OK;
}

static enum status encode_all(struct writing *w)
{
    struct stream s = {.name = w->input.files == 1 ? w->input.file[0].path : "a text",
                       .user = w,
                       .threads = w->c->threads,
                       .read = read_some,
                       .more = next_part,
                       .cut = cut_unit,
                       .work = encode_unit,
                       .open = open_worker,
                       .close = close_worker,
                       .pass = pass};
    return stream_run(&s);
}

/* For a large split, computes the digest of the blocks that dataset_open will verify. */
static enum status hash_blocks(struct writing *w, struct token_file *like, struct meta_split *m)
{
    struct token_split split;
    enum status tokens;
    if (like->count * like->bytes_per_token <= TOKEN_SPLIT_MEMORY) return ST_OK;
    TRY(token_split_open(&split, like, 1, "meta.json", w->a));
    enum status st =
        token_split_scan(&split, w->c->tokenizer->bpe.ids, false, false, m->blocks_sha256, &tokens);
    token_split_close(&split);
    return st == ST_OK ? tokens : st;
}

static const char *name_source(const struct writing *w)
{
    const char *first = meta_printable(w->c->from[0], w->a);
    if (!strcmp(first, "-")) first = "the standard input";
    return w->c->froms == 1 ? first : arena_printf(w->a, "%s and %d more", first, w->c->froms - 1);
}

static enum status check_splits(const struct writing *w)
{
    if (!w->cut && w->documents == 0) return fail(ST_USAGE, "%s has no documents", name_source(w));
    for (int s = 0; s < SPLIT_COUNT; s++)
        if (w->out[s].bytes == 0)
            return fail(ST_USAGE,
                        "none of the %lld documents became %s data: choose another --seed or "
                        "--val_share, or give more documents",
                        (long long)w->documents, s == SPLIT_VAL ? "validation" : "training");
    return ST_OK;
}

static enum status open_outputs(struct writing *w, const char *folder)
{
    for (int s = 0; s < SPLIT_COUNT; s++) {
        const char *path = arena_printf(w->a, "%s/%s.bin", folder, split_name(s));
        TRY(file_writer_open(&w->out[s].file, path));
        w->out[s].is_open = true;
        w->out[s].hash = hash_open();
    }
    return ST_OK;
}

static enum status commit(struct writing *w, const char *folder, struct meta *m)
{
    for (int s = 0; s < SPLIT_COUNT; s++) {
        struct output *o = &w->out[s];
        struct token_file like = {.path = arena_printf(w->a, "%s/%s.bin", folder, split_name(s)),
                                  .bytes_per_token = w->id_bytes,
                                  .count = o->bytes / w->id_bytes};
        o->is_open = false;
        TRY(file_writer_commit(&o->file));
        hash_close(o->hash, m->split[s].sha256);
        o->hash = NULL;
        m->split[s].tokens = like.count;
        TRY(hash_blocks(w, &like, &m->split[s]));
    }
    return ST_OK;
}

/* Closes the files and hashes that are still open after a failure. */
static void discard(struct writing *w)
{
    char unused[HASH_HEX];
    for (int s = 0; s < SPLIT_COUNT; s++) {
        if (w->out[s].is_open) file_writer_discard(&w->out[s].file);
        if (w->out[s].hash) hash_close(w->out[s].hash, unused);
    }
}

static enum status fill(void *user, const char *folder, struct meta *m)
{
    struct writing *w = user;
    data_byte_pairs.of_tokenizer(&m->vocabulary, w->c->tokenizer);
    m->source = name_source(w);
    enum status st = open_outputs(w, folder);
    if (st == ST_OK) st = encode_all(w);
    if (st == ST_OK) st = check_splits(w);
    if (st == ST_OK) st = commit(w, folder, m);
    m->documents = w->cut ? 1 : w->documents;
    discard(w);
    return st;
}

static enum status prepare(struct writing *w)
{
    w->first_of_file = ARENA_NEW(w->a, int64_t, w->input.files);
    if (is_single(w)) return find_cut(w);
    w->end_id = tokenizer_special(w->c->tokenizer, "<|endoftext|>");
    if (w->end_id >= 0) return ST_OK;
    return fail(ST_USAGE, "the tokenizer has no <|endoftext|>, the token that ends each document");
}

enum status corpus_write(const struct corpus *c, struct arena *a)
{
    struct writing w = {.c = c, .a = a, .id_bytes = bpe_id_bytes(&c->tokenizer->bpe)};
    TRY(dataset_check_name(c->name));
    enum status st = corpus_input_open(&w.input, c->from, c->froms, c->data_dir, a);
    w.bpe_long = bpe_long_open(&c->tokenizer->bpe);
    if (st == ST_OK) st = prepare(&w);
    if (st == ST_OK) st = dataset_create(c->data_dir, c->name, c->replace, fill, &w, a);
    bpe_long_close(w.bpe_long);
    corpus_input_close(&w.input);
    return st;
}
