#include "profile/profile.h"

#include <string.h>

static const char *const names[FAMILIES] = {
    [FAMILY_PRODUCTS] = "matrix products",
    [FAMILY_ATTENTION] = "attention",
    [FAMILY_SOFTMAX] = "softmax",
    [FAMILY_NORMS] = "norms",
    [FAMILY_POINTWISE] = "pointwise",
    [FAMILY_LOSS] = "loss",
    [FAMILY_OPTIMIZER] = "optimizer",
    [FAMILY_COPIES] = "copies and casts",
    [FAMILY_EMBEDDINGS] = "embeddings",
    [FAMILY_OTHER] = "of no kernel",
    [FAMILY_IDLE] = "idle",
};

const char *family_name(enum family family)
{
    return names[family];
}

/* Operators whose family does not depend on where they stand. All others do arithmetic on elements or
 * sum them: they belong to what they are a part of, else they are pointwise. */
static const struct {
    enum op op;
    enum family family;
} table[] = {
    {OP_MATMUL, FAMILY_PRODUCTS},
    {OP_LINEAR, FAMILY_PRODUCTS},
    {OP_LINEAR_GELU, FAMILY_PRODUCTS},
    {OP_MATMUL_GELU_GRAD, FAMILY_PRODUCTS},
    {OP_MATMUL_SUM, FAMILY_PRODUCTS},
    {OP_MATMUL_SCALED, FAMILY_PRODUCTS},
    {OP_ATTENTION, FAMILY_ATTENTION},
    {OP_ATTENTION_GRAD, FAMILY_ATTENTION},
    {OP_ATTENTION_CACHED, FAMILY_ATTENTION},
    {OP_SCORE_SOFTMAX, FAMILY_SOFTMAX},
    {OP_SCORE_SOFTMAX_GRAD, FAMILY_SOFTMAX},
    {OP_SOFTMAX, FAMILY_SOFTMAX},
    {OP_SOFTMAX_GRAD, FAMILY_SOFTMAX},
    {OP_LAYERNORM, FAMILY_NORMS},
    {OP_LAYERNORM_GRAD, FAMILY_NORMS},
    {OP_ADD_LAYERNORM, FAMILY_NORMS},
    {OP_LAYERNORM_GRAD_ADD, FAMILY_NORMS},
    {OP_LAYERNORM_GRAD_DROP, FAMILY_NORMS},
    {OP_RMSNORM, FAMILY_NORMS},
    {OP_RMSNORM_GRAD, FAMILY_NORMS},
    {OP_ADD_RMSNORM, FAMILY_NORMS},
    {OP_RMSNORM_GRAD_ADD, FAMILY_NORMS},
    {OP_CROSS_ENTROPY, FAMILY_LOSS},
    {OP_CROSS_ENTROPY_GRAD, FAMILY_LOSS},
    {OP_CROSS_ENTROPY_BOTH, FAMILY_LOSS},
    {OP_PICK, FAMILY_LOSS},
    {OP_PICK_GRAD, FAMILY_LOSS},
    {OP_ADAMW, FAMILY_OPTIMIZER},
    {OP_ADAMW_COPY, FAMILY_OPTIMIZER},
    {OP_EMBED, FAMILY_EMBEDDINGS},
    {OP_EMBED_GRAD, FAMILY_EMBEDDINGS},
    {OP_EMBED_GRAD_ADD, FAMILY_EMBEDDINGS},
    {OP_EMBED_GRAD_SUM, FAMILY_EMBEDDINGS},
    {OP_EMBED_SUM, FAMILY_EMBEDDINGS},
    {OP_CAST, FAMILY_COPIES},
    {OP_QUANTISE, FAMILY_COPIES},
    {OP_QUANTISE_ADD_LAYERNORM, FAMILY_NORMS},
    {OP_QUANTISE_GELU, FAMILY_POINTWISE},
    {OP_QUANTISE_GELU_GRAD, FAMILY_POINTWISE},
    {OP_FILL, FAMILY_COPIES},
    {OP_STORE, FAMILY_COPIES},
    {OP_PACK, FAMILY_COPIES},
    {OP_SPLIT, FAMILY_COPIES},
    {OP_CONCAT, FAMILY_COPIES},
    {OP_SPLIT_HEADS, FAMILY_COPIES},
    {OP_MERGE_HEADS, FAMILY_COPIES},
    {OP_DROPOUT, FAMILY_POINTWISE},
    {OP_DROPOUT_MASK, FAMILY_POINTWISE},
};

static bool within(const char *scope, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = scope; (at = strstr(at, word)); at += n)
        if ((at == scope || at[-1] == '.') && (at[n] == '\0' || at[n] == '.')) return true;
    return false;
}

enum family family_of(const struct node *n, bool primitive)
{
    for (int i = 0; i < COUNT_OF(table); i++)
        if (table[i].op == n->op) return table[i].family;
    if (n->phase == PHASE_UPDATE) return FAMILY_OPTIMIZER;
    if (within(n->scope, "loss")) return FAMILY_LOSS;
    if (!primitive) return FAMILY_POINTWISE;
    if (within(n->scope, "softmax")) return FAMILY_SOFTMAX;
    static const char *const norms[] = {"ln_1", "ln_2", "ln_f", "ln_final", "ln"};
    for (int i = 0; i < COUNT_OF(norms); i++)
        if (within(n->scope, norms[i])) return FAMILY_NORMS;
    return FAMILY_POINTWISE;
}
