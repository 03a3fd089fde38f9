/* strobe sample: generates text with a checkpoint. */
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/run_word.h"
#include "data/kind.h"
#include "data/source.h"
#include "data/tokenizers.h"
#include "train/sampler.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char file_prefix[] = "FILE:";

struct sampling {
    struct saved_run *saved;
    struct engine engine;
    struct sampler sampler;
    int32_t *prompt;
    int64_t prompt_tokens;
    bool live;       /* print each token as it is generated */
    int64_t printed; /* bytes of the text that were printed */
};

/* --start=FILE:prompt.txt reads the prompt from the file, FILE:- from the standard input. */
static enum status read_start(const char *start, const char **ret, struct arena *a)
{
    struct source_text t;
    *ret = start;
    if (strncmp(start, file_prefix, sizeof file_prefix - 1)) return ST_OK;
    TRY(source_file(&t, start + sizeof file_prefix - 1, a));
    *ret = t.text;
    return ST_OK;
}

static enum status read_prompt(struct sampling *p, struct arena *a)
{
    const char *start;
    TRY(read_start(p->saved->config.sample.start, &start, a));
    enum status st =
        vocabulary_encode(&p->saved->vocabulary, start, a, &p->prompt, &p->prompt_tokens);
    if (st == ST_USAGE && !strcmp(start, "\n")) { /* the default, but the text has one line */
        log_info("no line feed, the default prompt, is in the vocabulary: starting with its first "
                 "token");
        p->prompt = ARENA_NEW(a, int32_t, 1);
        p->prompt_tokens = 1;
        st = ST_OK;
    }
    TRY(st);
    if (p->prompt_tokens) return ST_OK;
    return fail(ST_USAGE, "the prompt is empty; give at least one token, as in --start='\\n'");
}

/* Prints what is complete of the text; a token may end inside of a character. */
static void print_new(struct sampling *p, const struct str *s, bool ends)
{
    struct str out = {0};
    int64_t end = s->len - (ends ? 0 : utf8_unfinished(str_text(s), s->len));
    if (!p->live) return;
    utf8_append_valid(&out, str_text(s) + p->printed, end - p->printed);
    p->printed = end;
    fputs(str_text(&out), stdout);
    fflush(stdout);
    str_release(&out);
}

static void append(struct sampling *p, struct str *s, int32_t token)
{
    struct token_text text = vocabulary_bytes(&p->saved->vocabulary, token);
    str_append_bytes(s, text.bytes, text.length);
    print_new(p, s, false);
}

static enum status write_one(struct sampling *p, int64_t number, struct str *s)
{
    sampler_start(&p->sampler, number, p->prompt, p->prompt_tokens);
    for (int64_t i = 0; i < p->prompt_tokens; i++) append(p, s, p->prompt[i]);
    for (int64_t i = 0; i < p->saved->config.sample.max_new_tokens; i++) {
        int32_t token;
        TRY(sampler_next(&p->sampler, &token));
        append(p, s, token);
    }
    print_new(p, s, true);
    return ST_OK;
}

static enum status write_all(struct sampling *p, json_t *texts)
{
    enum status st = ST_OK;
    for (int64_t i = 0; st == ST_OK && i < p->saved->config.sample.num_samples; i++) {
        struct str s = {0}, valid = {0};
        p->printed = 0;
        if (p->live && i) printf("\n---------------\n");
        st = write_one(p, i, &s);
        utf8_append_valid(&valid, str_text(&s), s.len);
        if (texts) json_array_append_new(texts, json_stringn(str_text(&valid), (size_t)valid.len));
        str_release(&s);
        str_release(&valid);
    }
    if (p->live) printf("\n");
    return st;
}

static void print_json(struct saved_run *s, json_t *texts)
{
    json_t *object = json_pack("{s:i, s:s, s:I, s:O}", "v", 1, "checkpoint", s->checkpoint.path,
                               "iter", (json_int_t)s->checkpoint.state.iter, "samples", texts);
    command_print_json(object);
}

static enum status sample(struct saved_run *s, bool cache, bool json, struct arena *a)
{
    const struct config *c = &s->config;
    struct sampler_options o = {c->sample.temperature, c->sample.top_k, c->sample.top_p,
                                (uint32_t)c->train.seed, cache};
    struct sampling p = {.saved = s, .live = !json};
    TRY(read_prompt(&p, a));
    unsigned kinds = 1u << GRAPH_LOGITS | (cache ? 1u << GRAPH_DECODE : 0);
    TRY(saved_engine(s, kinds, &p.engine, a));
    sampler_init(&p.sampler, &p.engine, &o, a);
    json_t *texts = json ? json_array() : NULL;
    enum status st = write_all(&p, texts);
    if (st == ST_OK && json) print_json(s, texts);
    json_decref(texts);
    sampler_close(&p.sampler);
    engine_close(&p.engine);
    return st;
}

/* For runs on token files whose texts are not known. */
static enum status use_tokenizer(struct saved_run *s, const char *word, struct arena *a)
{
    struct tokenizer *t = ARENA_NEW(a, struct tokenizer, 1);
    TRY(tokenizers_find(t, word, a));
    if (t->bpe.ids > s->vocabulary.size)
        return fail(ST_USAGE,
                    "--tokenizer=%s has %d tokens, but the model was trained on a vocabulary of %d",
                    word, t->bpe.ids, s->vocabulary.size);
    int size = s->vocabulary.size; /* of the model; ids beyond the tokenizer's have no text */
    data_byte_pairs.of_tokenizer(&s->vocabulary, t);
    s->vocabulary.size = size;
    return ST_OK;
}

enum status cmd_sample(int argc, char **argv, struct arena *a)
{
    const char *tokenizer = NULL;
    bool best = false, json = false, cache = true;
    const struct opt options[] = {
        {"best", OPT_FLAG, &best, NULL,
         "use the checkpoint with the lowest validation loss, not the last one"},
        {"cache", OPT_FLAG, &cache, NULL,
         "keep the keys and values of earlier tokens (true); false: slower, and the same text "
         "(in bfloat16 rounding may change it)"},
        {"tokenizer", OPT_TEXT, &tokenizer, "NAME",
         "for a run on token files without one: gpt2, or a folder as of strobe tokenize"},
        {"json", OPT_FLAG, &json, NULL, "print the texts as JSON"},
        {0},
    };
    TRY(opt_parse(options, &argc, argv, config_is_key));
    struct saved_run s;
    TRY(run_word_open(&s, argc, argv, "sample", best, a));
    if (tokenizer) TRY(use_tokenizer(&s, tokenizer, a));
    return sample(&s, cache, json, a);
}
