#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

enum { SCOPE_TEXT = 256 };

/* Names of scopes inside a block and outside. Two words are two levels. */
static const struct {
    const char *scope, *word[2];
} of_block[] =
    {
        {"", {"residual sum"}},
        {"ln_1", {"norm 1"}},
        {"attn.c_attn", {"attention", "q, k, v"}},
        {"attn", {"attention", "heads"}},
        {"attn.scores", {"attention", "scores"}},
        {"attn.softmax", {"attention", "softmax"}},
        {"attn.weighted_sum", {"attention", "weighted sum"}},
        {"attn.c_proj", {"attention", "projection"}},
        {"attn.q_proj", {"attention", "q"}},
        {"attn.k_proj", {"attention", "k"}},
        {"attn.v_proj", {"attention", "v"}},
        {"attn.q_proj+k_proj+v_proj", {"attention", "q, k, v"}},
        {"attn.qkv", {"attention", "q, k, v together"}},
        {"attn.rope", {"attention", "RoPE"}},
        {"attn.output_proj", {"attention", "projection"}},
        {"ln_2", {"norm 2"}},
        {"mlp.c_fc", {"MLP", "up"}},
        {"mlp", {"MLP", "GELU"}},
        {"mlp.c_proj", {"MLP", "down"}},
        {"ffn.w1", {"feed-forward", "gate"}},
        {"ffn.w3", {"feed-forward", "up"}},
        {"ffn.w1+w3", {"feed-forward", "gate, up"}},
        {"ffn", {"feed-forward", "SwiGLU"}},
        {"ffn.w2", {"feed-forward", "down"}},
},
  of_model[] = {
      {"", {"embeddings"}},         {"wte", {"embeddings"}},
      {"wpe", {"embeddings"}},      {"ln_f", {"final norm"}},
      {"ln_final", {"final norm"}}, {"rope", {"RoPE angles"}},
      {"lm_head", {"head"}},        {"loss", {"loss"}},
      {"clip", {"clipping"}},       {"grad_norm", {"gradient norm"}},
};

static void add_word(struct range *r, const char *word)
{
    if (word && r->words < RANGE_DEPTH) r->word[r->words++] = word;
}

/* Removes the suffix `end`; true if it was present. */
static bool cut(char *scope, const char *end)
{
    size_t n = strlen(scope), k = strlen(end);
    if (n < k || strcmp(scope + n - k, end) != 0) return false;
    scope[n - k] = '\0';
    return true;
}

/* The block of a scope: 3 for "h.3.attn", else -1. *ret_rest: the rest of the scope. */
static int block_of(const char *scope, const char **ret_rest)
{
    *ret_rest = scope;
    if (strncmp(scope, "h.", 2) != 0) return -1;
    char *end;
    long layer = strtol(scope + 2, &end, 10);
    if (end == scope + 2 || (*end && *end != '.')) return -1;
    *ret_rest = *end ? end + 1 : end;
    return (int)layer;
}

/* A scope that the tables do not list: uses its own words. */
static void add_scope_words(struct range *r, const char *scope, struct arena *a)
{
    char *rest = arena_strdup(a, scope);
    for (char *word = strtok_r(rest, ".", &rest); word; word = strtok_r(NULL, ".", &rest))
        add_word(r, word);
}

/* An operator of attention and its gradient share one range; NULL: use the scope. */
static const char *own_scope(enum op op)
{
    if (op == OP_SCORE_SOFTMAX || op == OP_SCORE_SOFTMAX_GRAD) return "attn.softmax";
    return op == OP_SPLIT_HEADS || op == OP_MERGE_HEADS ? "attn" : NULL;
}

static void add_words(struct range *r, const struct node *n, const char *rest, struct arena *a)
{
    const bool block = r->layer >= 0;
    const int rows = block ? COUNT_OF(of_block) : COUNT_OF(of_model);
    for (int i = 0; i < rows; i++) {
        const char *const *word = block ? of_block[i].word : of_model[i].word;
        if (strcmp(block ? of_block[i].scope : of_model[i].scope, rest) != 0) continue;
        add_word(r, word[0]);
        bool flash = n->op == OP_ATTENTION || n->op == OP_ATTENTION_GRAD;
        add_word(r, flash ? "flash attention" : word[1]);
        return;
    }
    add_scope_words(r, rest, a);
}

static bool copies_data(enum op op)
{
    return op == OP_CAST || op == OP_PACK || op == OP_STORE || op == OP_FILL;
}

bool range_has(const struct range *r, const char *word)
{
    for (int i = 0; i < r->words; i++)
        if (!strcmp(r->word[i], word)) return true;
    return false;
}

int range_shared(const struct range *x, const struct range *y)
{
    int same = 0;
    while (same < x->words && same < y->words && !strcmp(x->word[same], y->word[same])) same++;
    return same;
}

struct range range_of(const struct node *n, const struct optimizer *o, struct arena *a)
{
    struct range r = {.layer = -1};
    char scope[SCOPE_TEXT];
    const char *rest;
    strncpy(scope, n->scope, sizeof scope - 1);
    scope[sizeof scope - 1] = '\0';
    bool recomputed = cut(scope, ".recompute");
    bool parameter = cut(scope, ".weight") || cut(scope, ".bias");
    add_word(&r, phase_name(n->phase));
    bool all = !*scope || !strcmp(scope, "optimizer"); /* parameters, by one kernel */
    if (n->phase == PHASE_UPDATE && (parameter || all)) {
        add_word(&r, copies_data(n->op) ? "copies of weights" : o->name);
        return r;
    }
    r.layer = block_of(scope, &rest);
    if (r.layer < 0) r.layer = n->layer;
    if (r.layer >= 0) add_word(&r, arena_printf(a, "block %d", r.layer));
    if (recomputed) add_word(&r, "recomputed");
    if (r.layer >= 0 && !strncmp(rest, "attn", 4) && own_scope(n->op)) rest = own_scope(n->op);
    add_words(&r, n, rest, a);
    return r;
}
