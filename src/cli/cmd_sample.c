/* strobe sample: generates text with a checkpoint. */
#include "base/file.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/run_word.h"
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
    bool live; /* print each token as it is generated */
};

/* --start=FILE:prompt.txt reads the prompt from the file. */
static enum status read_prompt(struct sampling *p, struct arena *a)
{
    const char *start = p->saved->config.sample.start;
    char *text;
    int64_t bytes;
    if (!strncmp(start, file_prefix, sizeof file_prefix - 1)) {
        TRY(file_read(start + sizeof file_prefix - 1, a, &text, &bytes));
        start = text;
    }
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

static void append(struct sampling *p, struct str *s, int32_t token)
{
    struct token_text text = vocabulary_bytes(&p->saved->vocabulary, token);
    str_append_bytes(s, text.bytes, text.length);
    if (!p->live) return;
    fwrite(text.bytes, 1, (size_t)text.length, stdout);
    fflush(stdout);
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
    return ST_OK;
}

static enum status write_all(struct sampling *p, json_t *texts)
{
    enum status st = ST_OK;
    for (int64_t i = 0; st == ST_OK && i < p->saved->config.sample.num_samples; i++) {
        struct str s = {0};
        if (p->live && i) printf("\n---------------\n");
        st = write_one(p, i, &s);
        if (texts) json_array_append_new(texts, json_string(str_text(&s)));
        str_release(&s);
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
    struct sampler_options o = {c->sample.temperature, c->sample.top_k, (uint32_t)c->train.seed,
                                cache};
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

enum status cmd_sample(int argc, char **argv)
{
    bool best = false, json = false, cache = true;
    const struct opt options[] = {
        {"best", OPT_FLAG, &best, NULL,
         "use the checkpoint with the lowest validation loss, not the last one"},
        {"cache", OPT_FLAG, &cache, NULL,
         "keep the keys and values of earlier tokens (true); false: slower, and the same text "
         "(in bfloat16 rounding may change it)"},
        {"json", OPT_FLAG, &json, NULL, "print the texts as JSON"},
        {0},
    };
    TRY(opt_parse(options, &argc, argv, config_is_key));
    struct arena a = {0};
    struct saved_run s;
    enum status st = run_word_open(&s, argc, argv, "sample", best, &a);
    if (st == ST_OK) st = sample(&s, cache, json, &a);
    arena_release(&a);
    return st;
}
