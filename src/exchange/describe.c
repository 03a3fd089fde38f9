/* Describes a model of any format, for `strobe info`. */
#include "base/json.h"
#include "base/visible.h"
#include "exchange/exchange.h"

#include <math.h>

static void print_types(const struct exchange_model *m, struct str *s)
{
    bool seen[SAFETENSORS_TYPE_COUNT] = {}, first = true;
    for (int i = 0; i < m->tensors; i++) {
        enum safetensors_type type = m->tensor[i].type;
        if (seen[type] || m->tensor[i].part != EXCHANGE_WEIGHT) continue;
        str_printf(s, "%s%s", first ? "" : " and ", safetensors_type_name(type));
        seen[type] = true;
        first = false;
    }
}

/* Counts values and bytes of the parameters, without the optimizer's state. */
static void add_up(const struct exchange_model *m, int64_t *ret_values, int64_t *ret_bytes)
{
    *ret_values = *ret_bytes = 0;
    for (int i = 0; i < m->tensors; i++) {
        int64_t values = 1;
        if (m->tensor[i].part != EXCHANGE_WEIGHT) continue;
        for (int d = 0; d < m->tensor[i].rank; d++) values *= m->tensor[i].dim[d];
        *ret_values += values;
        *ret_bytes += m->tensor[i].bytes;
    }
}

void exchange_print(const struct exchange_model *m, struct str *s)
{
    const struct config_model *k = &m->config.model;
    int64_t values, bytes;
    char number[32], size[32], best[32];
    add_up(m, &values, &bytes);
    visible_append(s, m->path);
    str_printf(s, "\n  format       %s\n", m->format->what);
    str_printf(s,
               "  model        %s, n_layer = %lld, n_head = %lld, n_embd = %lld, block_size = %lld",
               model_words[k->kind], (long long)k->n_layer, (long long)k->n_head,
               (long long)k->n_embd, (long long)k->block_size);
    if (k->n_kv_head) str_printf(s, ", n_kv_head = %lld", (long long)k->n_kv_head);
    if (k->kind == MODEL_GPT)
        str_printf(s, ", %s biases, gelu %s", k->bias ? "with" : "without",
                   k->gelu == GELU_TANH ? "tanh" : "erf");
    str_append(s, "\n");
    str_printf(s, "  tokens       %s", str_thousands(number, m->tokens));
    str_append(s, "; tokenizer: ");
    visible_append(s, m->vocabulary  ? "that of the run"
                      : m->tokenizer ? m->tokenizer
                                     : "not in the file");
    str_append(s, "\n");
    str_printf(s, "  parameters   %s, ", str_thousands(number, values));
    print_types(m, s);
    str_printf(s, ", %s\n", str_bytes(size, (double)bytes));
    if (!m->iter && !m->states) return;
    str_printf(s, "  training     iteration %lld", (long long)m->iter);
    if (isfinite(m->best_val_loss))
        str_printf(s, ", best val loss %s", str_loss(best, m->best_val_loss));
    if (m->states)
        str_printf(s, ", with the state of its optimizer, %s",
                   optimizer_words[m->config.train.optimizer]);
    str_append(s, "\n");
}

/* A JSON string with all bytes made visible, since JSON must be valid UTF-8. */
static json_t *visible_json(const char *text)
{
    struct str s = {};
    if (!text) return json_null();
    visible_append(&s, text);
    json_t *j = json_string(str_text(&s));
    str_release(&s);
    return j;
}

json_t *exchange_json(const struct exchange_model *m)
{
    const struct config_model *k = &m->config.model;
    int64_t values, bytes;
    add_up(m, &values, &bytes);
    return json_pack(
        "{s:i, s:o, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:s, s:I, s:o, s:I, s:I, s:I, s:o, "
        "s:i}",
        "v", 1, "path", visible_json(m->path), "format", m->format->what, "model",
        model_words[k->kind], "n_layer", (json_int_t)k->n_layer, "n_head", (json_int_t)k->n_head,
        "n_kv_head", (json_int_t)k->n_kv_head, "n_embd", (json_int_t)k->n_embd, "block_size",
        (json_int_t)k->block_size, "bias", k->bias, "gelu", k->gelu == GELU_TANH ? "tanh" : "erf",
        "tokens", (json_int_t)m->tokens, "tokenizer", visible_json(m->tokenizer), "parameters",
        (json_int_t)values, "bytes", (json_int_t)bytes, "iter", (json_int_t)m->iter,
        "best_val_loss", number_or_null(m->best_val_loss), "optimizer_states", m->states);
}
