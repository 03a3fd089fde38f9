/* Strobe's own checkpoint as a format, so that a new run or an export can read a checkpoint like a
 * file of another program. train/checkpoint.c, which finds checkpoints, verifies the digests. */
#include "base/file.h"
#include "base/json.h"
#include "exchange/exchange.h"

#include <math.h>
#include <string.h>

static const char state_name[] = "state.json";
static const char *const tensor_files[] = {"model.safetensors", "optimizer.safetensors"};

static bool is_checkpoint(const char *path, struct arena *a)
{
    return file_is_dir(path) && file_exists(arena_printf(a, "%s/%s", path, state_name)) &&
           file_exists(arena_printf(a, "%s/%s", path, tensor_files[0]));
}

/* Endings of the names of moments (SGD: .momentum, AdamW: .m and .v). */
static const struct {
    const char *ending;
    enum exchange_part part;
} moments[] = {
    {".momentum", EXCHANGE_MOMENT1},
    {".m", EXCHANGE_MOMENT1},
    {".v", EXCHANGE_MOMENT2},
};

static enum status name_moment(struct exchange_model *m, struct exchange_tensor *x, struct arena *a)
{
    for (int i = 0; i < COUNT_OF(moments); i++) {
        int64_t n = (int64_t)strlen(x->name) - (int64_t)strlen(moments[i].ending);
        if (n <= 0 || strcmp(x->name + n, moments[i].ending)) continue;
        x->name = arena_printf(a, "%.*s", (int)n, x->name);
        x->part = moments[i].part;
        if ((int)x->part > m->states) m->states = x->part;
        return ST_OK;
    }
    return fail(ST_FORMAT, "%s: %s is not the state of an optimizer", m->path, x->name);
}

static enum status open_tensors(struct exchange_model *m, int file, struct arena *a)
{
    struct safetensors s;
    TRY(safetensors_open(&s, arena_printf(a, "%s/%s", m->path, tensor_files[file]), a));
    m->file[m->files++] = (struct exchange_file){s.path, s.fd};
    for (int i = 0; i < s.count; i++) {
        struct exchange_tensor x = exchange_from_safetensor(m, &s.tensor[i]);
        if (file) TRY(name_moment(m, &x, a));
        exchange_add(m, x, a);
    }
    return ST_OK;
}

static enum status read_state(struct exchange_model *m, const char *path, struct arena *a)
{
    enum { STATE_BYTES_MOST = 1 << 20 };
    char *text;
    int64_t bytes;
    TRY(file_read_most(path, STATE_BYTES_MOST, a, &text, &bytes));
    json_t *root = json_loadb(text, (size_t)bytes, JSON_REJECT_DUPLICATES, NULL);
    const char *config = json_string_value(json_object_get(root, "config"));
    const json_t *best = json_object_get(root, "best_val_loss"),
                 *iter = json_object_get(root, "iter");
    enum status st = config ? config_read_memory(&m->config, path, arena_strdup(a, config), a)
                            : fail(ST_FORMAT, "%s has no \"config\"", path);
    if (st == ST_USAGE) st = ST_FORMAT; /* the file is wrong, not the command line */
    m->iter = json_integer_value(iter);
    if (st == ST_OK && (!json_is_integer(iter) || m->iter < 0))
        st = fail(ST_FORMAT, "%s: \"iter\" is missing or is not a number of iterations", path);
    if (json_is_number(best)) m->best_val_loss = json_number_value(best);
    json_decref(root);
    return st;
}

/* Checks that the file has all states of its optimizer, or none. */
static enum status check_states(const struct exchange_model *m)
{
    enum optimizer_kind kind = m->config.train.optimizer;
    int wanted = kind == OPTIMIZER_ADAMW ? 2 : 1;
    if (!m->states || m->states == wanted) return ST_OK;
    return fail(ST_FORMAT, "%s has the states of another optimizer than %s, that of its state.json",
                m->path, optimizer_words[kind]);
}

/* Finds the number of tokens; the other rows of the token table are padding. */
static enum status read_vocabulary(struct exchange_model *m, struct arena *a)
{
    const char *path = arena_printf(a, "%s/../../vocabulary.json", m->path);
    struct vocabulary *v = ARENA_NEW(a, struct vocabulary, 1);
    m->tokens = m->config.model.vocab_size;
    if (file_exists(path)) {
        TRY(vocabulary_read(v, path, a));
        m->vocabulary = v;
        m->tokens = max_i64(m->tokens, v->size);
    }
    if (m->tokens <= m->vocab) return ST_OK;
    return fail(ST_FORMAT, "%s has %lld tokens, but its table only %lld", m->path,
                (long long)m->tokens, (long long)m->vocab);
}

static enum status open_checkpoint(struct exchange_model *m, struct arena *a)
{
    TRY(read_state(m, arena_printf(a, "%s/%s", m->path, state_name), a));
    m->file = ARENA_NEW(a, struct exchange_file, COUNT_OF(tensor_files));
    for (int i = 0; i < COUNT_OF(tensor_files); i++) TRY(open_tensors(m, i, a));
    TRY(exchange_sort(m));
    TRY(check_states(m));
    const struct exchange_tensor *table = exchange_find(m, "wte.weight", EXCHANGE_WEIGHT);
    if (!table || table->rank != 2 || table->dim[0] < 1 || table->dim[0] > VOCABULARY_MAX)
        return fail(ST_FORMAT, "%s has no table of tokens (wte.weight)", m->path);
    m->vocab = table->dim[0];
    return read_vocabulary(m, a);
}

const struct exchange_format exchange_strobe = {
    .what = "a checkpoint of Strobe",
    .is = is_checkpoint,
    .open = open_checkpoint,
};
