/* nanoGPT's ckpt.pt: read as its train.py writes it, written and read back, damaged. */
#include "../support/ckpt.h"
#include "../support/message.h"
#include "../support/small.h"
#include "../support/workdir.h"
#include "base/file.h"
#include "data/kind.h"
#include "engine/weights.h"
#include "exchange/exchange.h"
#include "exchange/torch_file.h"
#include "train/origin.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct arena arena;
static struct ckpt ckpt;
static const char *path, *out;

static int set_up(void **)
{
    workdir_open();
    path = workdir_path("ckpt.pt");
    out = workdir_path("exports/ckpt.pt");
    ckpt_init(&ckpt, true);
    return 0;
}

static int tear_down(void **)
{
    arena_release(&arena);
    ckpt_release(&ckpt);
    workdir_close();
    return 0;
}

static struct exchange_model open_path(const char *name)
{
    struct exchange_model m;
    if (exchange_open(&m, name, &arena) != ST_OK) fail_msg("%s", fail_message());
    assert_ptr_equal(m.format, &exchange_nanogpt);
    return m;
}

static struct exchange_model open_ckpt(void)
{
    unlink(path); /* writing a new file waits for no disk */
    ckpt_write(&ckpt, path);
    return open_path(path);
}

static void refused_path(enum status expected, const char *part)
{
    struct exchange_model m;
    assert_int_equal(exchange_open(&m, path, &arena), expected);
    assert_message_has(part);
    assert_message_has(path);
    assert_null(strchr(fail_message(), '\n'));
    assert_int_equal(m.files, 0);
}

static void refused(enum status expected, const char *part)
{
    unlink(path);
    ckpt_write(&ckpt, path);
    refused_path(expected, part);
}

static void set(enum ckpt_part part, struct ckpt_value v)
{
    ckpt.part[part] = v;
}

static struct model model_of(const struct exchange_model *m)
{
    struct model own;
    struct config_model keys = m->config.model;
    keys.vocab_size = keys.pad_vocab = 0;
    model_init(&own, &keys, m->vocab, 0, &arena);
    return own;
}

static bool is_linear(const char *name)
{
    bool inside = strstr(name, "attn.c_") || strstr(name, "mlp.c_");
    return inside && strstr(name, ".weight");
}

/* Every value of a parameter or moment is the file's, whose matrices of nn.Linear are (out,in). */
static void assert_values(const struct exchange_model *m, const struct parameter *p,
                          enum exchange_part part)
{
    const struct ckpt_tensor *t = ckpt_tensor(&ckpt, p->name);
    const float *expected = part ? ckpt_moment(&ckpt, t, part) : t->data;
    int64_t n = type_elements(&p->type), rows = p->type.dim[0], columns = n / rows;
    float *values = ARENA_NEW(&arena, float, n);
    if (exchange_read(m, p, part, values) != ST_OK) fail_msg("%s", fail_message());
    assert_int_equal(ckpt_elements(t), n);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            int64_t at = is_linear(p->name) ? c * rows + r : r * columns + c;
            if (values[r * columns + c] != expected[at])
                fail_msg("%s, part %d: [%d,%d] differs", p->name, part, (int)r, (int)c);
        }
}

static void assert_all_values(const struct exchange_model *m)
{
    const struct model own = model_of(m);
    for (int i = 0; i < own.parameters; i++)
        for (int part = 0; part <= m->states; part++) assert_values(m, &own.parameter[i], part);
}

/* --- what train.py writes --------------------------------------------------------------------- */

static void assert_whole(bool bias)
{
    struct exchange_model m = open_ckpt();
    const struct config_model *k = &m.config.model;
    assert_int_equal(k->n_layer, CKPT_LAYERS);
    assert_int_equal(k->n_head, CKPT_HEADS);
    assert_int_equal(k->n_embd, CKPT_EMBD);
    assert_int_equal(k->block_size, CKPT_POSITIONS);
    assert_int_equal(k->vocab_size, CKPT_VOCAB);
    assert_int_equal(m.vocab, CKPT_VOCAB);
    assert_int_equal(k->kind, MODEL_GPT);
    assert_int_equal(k->gelu, GELU_ERF);
    assert_int_equal(k->bias, bias);
    assert_int_equal(m.iter, CKPT_ITER_NUM);
    assert_true(m.best_val_loss == 2.5);
    assert_int_equal(m.states, 2);
    assert_int_equal(m.config.train.optimizer, OPTIMIZER_ADAMW);
    assert_all_values(&m);
    assert_int_equal(exchange_verify(&m), ST_OK);
    exchange_close(&m);
    struct config_model keys;
    assert_int_equal(exchange_config(path, &keys, &arena), ST_OK);
    assert_memory_equal(&keys, &m.config.model, sizeof keys);
}

static void test_bias(void **)
{
    assert_whole(true);
    ckpt_set(&ckpt, "bias", CKPT_NOTHING); /* nanoGPT before it had the key */
    assert_whole(true);
    set(CKPT_OPTIMIZER, CKPT_NOTHING);
    ckpt_set(&ckpt, "bias", CKPT_VALUE("\x89"));
    refused(ST_FORMAT, "has a tensor h.0.attn.c_attn.bias, which a GPT with n_layer = 2 lacks");
    ckpt_set(&ckpt, "bias", CKPT_VALUE("K\1"));
    refused(ST_FORMAT, "bias in model_args is not True or False");
    ckpt_init(&ckpt, false);
    assert_whole(false);
    ckpt_set(&ckpt, "bias", CKPT_NOTHING);
    set(CKPT_OPTIMIZER, CKPT_NOTHING);
    refused(ST_FORMAT, "has no tensor h.0.ln_1.bias");
}

static void test_prefixes(void **)
{
    static const char *const prefixes[] = {"_orig_mod.", "module.", "_orig_mod.module.",
                                           "module._orig_mod."};
    for (int i = 0; i < COUNT_OF(prefixes); i++) {
        ckpt_init(&ckpt, true);
        ckpt_prefix(&ckpt, prefixes[i]);
        struct exchange_model m = open_ckpt();
        assert_all_values(&m);
        exchange_close(&m);
    }
    ckpt_init(&ckpt, true);
    for (int i = 0; i < ckpt.tensors; i++) /* the dictionary of the module transformer alone */
        if (!strncmp(ckpt.tensor[i].name, "transformer.", 12)) ckpt.tensor[i].name += 12;
    ckpt_remove(&ckpt, "lm_head.weight");
    struct exchange_model m = open_ckpt();
    assert_all_values(&m);
    exchange_close(&m);
    ckpt_prefix(&ckpt, "model.");
    refused(ST_FORMAT, "has no tensor");
}

static void test_masks(void **)
{
    static const int64_t dim[] = {1, 1, CKPT_POSITIONS, CKPT_POSITIONS};
    ckpt_add(&ckpt, "transformer.h.0.attn.bias", 4, dim);
    ckpt_add(&ckpt, "transformer.h.1.attn.bias", 4, dim)->type = SAFETENSORS_BF16;
    struct exchange_model m = open_ckpt();
    assert_int_equal(m.tensors, 3 * model_of(&m).parameters);
    assert_all_values(&m);
    exchange_close(&m);
    ckpt_add(&ckpt, "transformer.h.0.attn.bias.x", 4, dim);
    refused(ST_FORMAT, "has a tensor h.0.attn.bias.x, which");
}

static void test_head(void **)
{
    struct ckpt_tensor *head = ckpt_tensor(&ckpt, "lm_head.weight");
    const struct ckpt_tensor *table = ckpt_tensor(&ckpt, "wte.weight");
    const float *other = head->data;
    head->same_as = NULL; /* its own storage, with the same values */
    head->data = table->data;
    struct exchange_model m = open_ckpt();
    assert_all_values(&m);
    exchange_close(&m);
    head->data = other;
    refused(ST_UNSUPPORTED, "has an output head of its own (lm_head.weight)");
    float *last = ARENA_NEW(&arena, float, CKPT_VOCAB *CKPT_EMBD);
    memcpy(last, table->data, (size_t)CKPT_VOCAB * CKPT_EMBD * sizeof *last);
    last[CKPT_VOCAB * CKPT_EMBD - 1] += 1;
    head->data = last;
    refused(ST_UNSUPPORTED, "has an output head of its own (lm_head.weight)");
    head->data = table->data;
    head->type = SAFETENSORS_F16;
    refused(ST_UNSUPPORTED, "has an output head of its own (lm_head.weight)");
    ckpt_remove(&ckpt, "lm_head.weight");
    m = open_ckpt();
    assert_all_values(&m);
    exchange_close(&m);
    set(CKPT_OPTIMIZER, CKPT_NOTHING);
    ckpt_tensor(&ckpt, "wte.weight")->name = "lm_head.weight";
    refused(ST_UNSUPPORTED, "has an output head of its own (lm_head.weight)");
}

static void test_types(void **)
{
    static const enum safetensors_type types[] = {SAFETENSORS_F16, SAFETENSORS_BF16};
    for (int k = 0; k < COUNT_OF(types); k++) {
        for (int i = 0; i < ckpt.tensors; i++) ckpt.tensor[i].type = types[k];
        struct exchange_model m = open_ckpt();
        assert_int_equal(m.tensor[0].type, types[k]);
        assert_all_values(&m);
        exchange_close(&m);
    }
    ckpt_tensor(&ckpt, "wpe.weight")->type = SAFETENSORS_I32;
    refused(ST_UNSUPPORTED, "tensor wpe.weight has the type I32; F64, F32, F16 and BF16 are read");
}

static void test_numbers(void **)
{
    const struct {
        struct ckpt_value value;
        double best;
    } losses[] = {
        {CKPT_VALUE("K\3"), 3},
        {CKPT_VALUE("G\x3f\xf8\0\0\0\0\0\0"), 1.5},
        {CKPT_VALUE(CKPT_SCALAR("1")), 2.5},
        {CKPT_VALUE("G\x41\xcd\xcd\x65\0\0\0\0"), 1e9}, /* its first value */
        {CKPT_NOTHING, INFINITY},
    };
    for (int i = 0; i < COUNT_OF(losses); i++) {
        set(CKPT_BEST, losses[i].value);
        struct exchange_model m = open_ckpt();
        assert_true(m.best_val_loss == losses[i].best);
        exchange_close(&m);
    }
    set(CKPT_BEST, CKPT_VALUE("N"));
    refused(ST_FORMAT, "best_val_loss is not a number");
    set(CKPT_BEST, CKPT_NOTHING);
    set(CKPT_STEP, CKPT_VALUE("K\0"));
    set(CKPT_ITER, CKPT_NOTHING);
    struct exchange_model m = open_ckpt();
    assert_int_equal(m.iter, 0);
    assert_int_equal(m.states, 2);
    exchange_close(&m);
    const struct ckpt_value no_number[] = {CKPT_VALUE("G\x40\x1c\0\0\0\0\0\0"),
                                           CKPT_VALUE(CKPT_SCALAR("0")), CKPT_VALUE("N"),
                                           CKPT_VALUE("J\xff\xff\xff\xff")};
    for (int i = 0; i < COUNT_OF(no_number); i++) {
        set(CKPT_ITER, no_number[i]);
        refused(ST_FORMAT, "iter_num is not a number of iterations");
    }
}

/* --- the optimizer ---------------------------------------------------------------------------- */

static void test_steps(void **)
{
    const struct ckpt_value right[] = {CKPT_VALUE("K\7"), CKPT_VALUE("G\x40\x1c\0\0\0\0\0\0"),
                                       CKPT_VALUE(CKPT_SCALAR("0")),
                                       CKPT_VALUE("K\x6") /* skipped by a loss scaler */};
    for (int i = 0; i < COUNT_OF(right); i++) {
        set(CKPT_STEP, right[i]);
        struct exchange_model m = open_ckpt();
        assert_int_equal(m.states, 2);
        assert_true(m.steps == (i == COUNT_OF(right) - 1 ? 6 : 0));
        exchange_close(&m);
    }
    set(CKPT_STEP, CKPT_VALUE("K\x8"));
    refused(ST_FORMAT, "the optimizer has done 8 steps, but iter_num is 7");
    set(CKPT_STEP, CKPT_VALUE(CKPT_SCALAR("1")));
    refused(ST_FORMAT, "the optimizer has done 2.5 steps");
    set(CKPT_STEP, CKPT_NOTHING);
    refused(ST_FORMAT, "step of the optimizer is not a number");
    /* A float32 cannot count beyond 2^24 one by one. */
    set(CKPT_STEP, CKPT_VALUE("G\x41\x70\0\0\0\0\0\0"));
    set(CKPT_ITER, CKPT_VALUE("J\1\0\0\1"));
    struct exchange_model m = open_ckpt();
    assert_int_equal(m.iter, 16777217);
    exchange_close(&m);
}

static void test_no_state(void **)
{
    const struct ckpt_value none[] = {CKPT_NOTHING, CKPT_VALUE("N")};
    for (int i = 0; i < COUNT_OF(none); i++) {
        set(CKPT_OPTIMIZER, none[i]);
        struct exchange_model m = open_ckpt();
        assert_int_equal(m.states, 0);
        assert_int_equal(m.iter, CKPT_ITER_NUM);
        assert_all_values(&m);
        exchange_close(&m);
    }
    set(CKPT_OPTIMIZER, (struct ckpt_value){});
    set(CKPT_STATE, CKPT_VALUE("}"));
    struct exchange_model m = open_ckpt();
    assert_int_equal(m.states, 0);
    exchange_close(&m);
    set(CKPT_STATE, CKPT_NOTHING);
    refused(ST_FORMAT, "has no state of an optimizer, which nanoGPT's ckpt.pt has");
}

#define PARAMS "X\6\0\0\0params"

/* Lists of numbers, in two dictionaries of a list. */
static struct ckpt_value groups(int first, int from, int second, int then, bool more)
{
    struct str s = {};
    str_append_bytes(&s, "]}" PARAMS "](", sizeof "]}" PARAMS "](" - 1);
    for (int i = 0; i < first; i++) str_append_bytes(&s, (char[]){'K', (char)(from + i)}, 2);
    str_append_bytes(&s, "esa}" PARAMS "](", sizeof "esa}" PARAMS "](" - 1);
    for (int i = 0; i < second; i++) str_append_bytes(&s, (char[]){'K', (char)(then + i)}, 2);
    str_append_bytes(&s, "esa}a", more ? 5 : 3);
    char *copy = arena_alloc(&arena, s.len + 1);
    memcpy(copy, s.data, (size_t)s.len);
    struct ckpt_value v = {copy, s.len};
    str_release(&s);
    return v;
}

static void test_groups(void **)
{
    enum { MATRICES = 10, REST = 18 };
    set(CKPT_GROUPS, groups(MATRICES, 0, REST, MATRICES, false));
    struct exchange_model m = open_ckpt();
    assert_all_values(&m);
    exchange_close(&m);
    const struct ckpt_value others[] = {
        groups(REST, 0, MATRICES, REST, false),
        groups(REST, MATRICES, MATRICES, 0, false),
        groups(MATRICES, 1, REST, MATRICES + 1, false),
        groups(MATRICES - 1, 0, REST + 1, MATRICES - 1, false),
        groups(MATRICES, 0, REST - 1, MATRICES, false),
        groups(MATRICES, 0, REST, MATRICES - 1, false),
        groups(0, 0, MATRICES + REST, 0, false),
        groups(0, 0, 0, 0, false),
        groups(MATRICES, 0, REST, MATRICES, true),
        CKPT_VALUE("](}}e"),
        CKPT_VALUE("](NNe"),
        CKPT_VALUE("](}" PARAMS "Ns}" PARAMS "Nse"),
        CKPT_VALUE("]"),
        CKPT_VALUE("]}" PARAMS "](K\0K\1K\2K\3esa"), /* one group */
        CKPT_VALUE("](}}}e"),
        CKPT_VALUE("}"),
        CKPT_NOTHING,
    };
    for (int i = 0; i < COUNT_OF(others); i++) {
        set(CKPT_GROUPS, others[i]);
        refused(ST_UNSUPPORTED, "not grouped as in nanoGPT (matrices, then the rest)");
    }
}

/* --- files that are none ---------------------------------------------------------------------- */

/* A zip file with one entry, whose method of compression is `method`. */
static void write_zip(const char *name, int method)
{
    struct zip_writer w;
    char *bytes;
    int64_t n;
    unlink(path);
    assert_int_equal(zip_writer_open(&w, path, &arena), ST_OK);
    zip_writer_add(&w, name, "x", 1);
    assert_int_equal(zip_writer_commit(&w), ST_OK);
    if (!method) return;
    assert_int_equal(file_read(path, &arena, &bytes, &n), ST_OK);
    char *directory = memmem(bytes, (size_t)n, "PK\1\2", 4);
    bytes[8] = directory[10] = (char)method;
    workdir_write(path, bytes, n);
}

static void test_other_files(void **)
{
    static const char legacy[] = "\x80\x02\x8a\nl\xfc\x9c\x46\xf9\x20j\xa8P\x19.\x80\x02M\xe9\3.";
    ckpt_write_weights(&ckpt, path);
    refused_path(ST_FORMAT, "has no dictionary \"model\", which nanoGPT's ckpt.pt has");
    set(CKPT_ARGS, CKPT_NOTHING);
    refused(ST_FORMAT, "has no dictionary \"model_args\", which nanoGPT's ckpt.pt has");
    workdir_write(path, legacy, sizeof legacy - 1);
    refused_path(ST_UNSUPPORTED, "was written by PyTorch before 1.6");
    write_zip("notes.txt", 0);
    refused_path(ST_FORMAT, "is a zip file without NAME/data.pkl: it was not written by torch.");
    write_zip("[Content_Types].xml", 8); /* a document of Word */
    refused_path(ST_UNSUPPORTED, "entry [Content_Types].xml is compressed");
    workdir_write(path, "just text", 9);
    refused_path(ST_FORMAT, "not a zip file");
    const char *renamed = workdir_path("model.bin");
    ckpt_init(&ckpt, true);
    ckpt_write(&ckpt, renamed); /* by its first bytes */
    struct exchange_model m = open_path(renamed);
    exchange_close(&m);
    workdir_write(renamed, legacy, sizeof legacy - 1);
    assert_int_equal(exchange_open(&m, renamed, &arena), ST_USAGE);
    assert_message_has("nor a ckpt.pt of nanoGPT");
}

/* --- writing ---------------------------------------------------------------------------------- */

static struct exchange_model write_out(struct exchange_model *m, int tokens)
{
    struct vocabulary v;
    data_tokens.sized(&v, tokens, &arena);
    const struct exchange_format *f = exchange_find_format("nanogpt");
    assert_ptr_equal(f, &exchange_nanogpt);
    if (exchange_write(m, &v, f, out, &arena) != ST_OK) fail_msg("%s", fail_message());
    return open_path(out);
}

static const struct pickle_value *get(const struct pickle_value *v, const char *key)
{
    const struct pickle_value *found = pickle_find(v, key);
    if (!found) fail_msg("there is no %s", key);
    return found;
}

/* Each step has a storage of its own, of one float32; the head has that of the table. */
static void assert_storages(const struct torch_file *f)
{
    const struct pickle_value *state = get(get(&f->root, "optimizer"), "state");
    const struct zip_entry *seen[CKPT_TENSORS_MOST];
    struct torch_tensor t, head;
    assert_true(state->dict->count > 1);
    for (int i = 0; i < state->dict->count; i++) {
        assert_int_equal(state->dict->item[i].key.number, i);
        const struct pickle_value *step = get(&state->dict->item[i].value, "step");
        assert_int_equal(torch_tensor(f, "step", step, &t), ST_OK);
        assert_int_equal(t.type, SAFETENSORS_F32);
        assert_int_equal(t.rank, 0);
        assert_int_equal(t.storage->bytes, 4);
        for (int k = 0; k < i; k++) assert_ptr_not_equal(seen[k], t.storage);
        seen[i] = t.storage;
    }
    const struct pickle_value *weights = get(&f->root, "model");
    assert_true(weights->dict->is_ordered);
    assert_int_equal(torch_tensor(f, "x", get(weights, "transformer.wte.weight"), &t), ST_OK);
    assert_int_equal(torch_tensor(f, "x", get(weights, "lm_head.weight"), &head), ST_OK);
    assert_ptr_equal(t.storage, head.storage);
}

static void assert_groups(const struct torch_file *f)
{
    static const char *const keys[] = {"lr",
                                       "betas",
                                       "eps",
                                       "weight_decay",
                                       "amsgrad",
                                       "maximize",
                                       "capturable",
                                       "differentiable",
                                       "foreach",
                                       "fused",
                                       "decoupled_weight_decay",
                                       "params"};
    const struct pickle_value *list = get(get(&f->root, "optimizer"), "param_groups");
    int number = 0;
    assert_int_equal(list->list->count, 2);
    for (int g = 0; g < 2; g++) {
        const struct pickle_value *group = &list->list->item[g];
        assert_int_equal(group->dict->count, COUNT_OF(keys));
        for (int i = 0; i < COUNT_OF(keys); i++) get(group, keys[i]);
        assert_true((get(group, "weight_decay")->real > 0) == !g);
        const struct pickle_list *params = get(group, "params")->list;
        for (int i = 0; i < params->count; i++) assert_int_equal(params->item[i].number, number++);
    }
    assert_int_equal(number, 28);
}

static void test_written_and_read_back(void **)
{
    struct exchange_model m = open_ckpt();
    struct exchange_model back = write_out(&m, 8); /* three rows are padding: they stay */
    assert_int_equal(back.vocab, CKPT_VOCAB);
    assert_memory_equal(&back.config.model, &m.config.model, sizeof m.config.model);
    assert_int_equal(back.iter, CKPT_ITER_NUM);
    assert_true(back.best_val_loss == 2.5);
    assert_int_equal(back.states, 2);
    assert_all_values(&back);
    struct torch_file f;
    assert_int_equal(torch_open(&f, out, &arena), ST_OK);
    assert_storages(&f);
    assert_groups(&f);
    torch_close(&f);
    exchange_close(&back);
    exchange_close(&m);
}

static void test_written_without_moments(void **)
{
    for (int states = 0; states < 2; states++) {
        struct exchange_model m = open_ckpt();
        m.states = states; /* 1: of SGD, which nanoGPT does not use */
        m.best_val_loss = INFINITY;
        unlink(out);
        struct exchange_model back = write_out(&m, CKPT_VOCAB);
        assert_int_equal(back.states, 0);
        assert_int_equal(back.iter, CKPT_ITER_NUM);
        assert_true(back.best_val_loss == 1e9);
        assert_int_equal(back.tensors, 28);
        assert_all_values(&back);
        struct torch_file f;
        assert_int_equal(torch_open(&f, out, &arena), ST_OK);
        assert_int_equal(get(get(&f.root, "optimizer"), "state")->dict->count, 0);
        assert_int_equal(f.zip.count, 28 + 6); /* no data that nothing names */
        assert_groups(&f);
        torch_close(&f);
        exchange_close(&back);
        exchange_close(&m);
    }
}

/* --- damage ----------------------------------------------------------------------------------- */

/* A wrong byte in the data of a weight, and in that of a moment. */
static void test_a_wrong_byte(void **)
{
    workdir_close();
    small_make();
    path = workdir_path("ckpt.pt");
    out = workdir_path("exports/ckpt.pt");
    struct exchange_model m = open_ckpt();
    struct config c = small_config();
    struct vocabulary v;
    struct learner l;
    int64_t iter = -1;
    c.model = m.config.model;
    data_tokens.sized(&v, CKPT_VOCAB, &arena);
    small_learner(&l, &c, 0, &arena);
    const struct weights_tensor *tensors = weights_tensors(&l.engine, &arena);
    if (origin_load(&m, &l.engine, tensors, &iter) != ST_OK) fail_msg("%s", fail_message());
    assert_int_equal(iter, CKPT_ITER_NUM);
    static const struct {
        const char *name;
        enum exchange_part part;
    } cases[] = {{"wte.weight", 0}, {"h.1.mlp.c_fc.weight", 0}, {"ln_f.bias", EXCHANGE_MOMENT2}};
    exchange_close(&m);
    for (int i = 0; i < COUNT_OF(cases); i++) {
        m = open_ckpt();
        const struct exchange_tensor *t = exchange_find(&m, cases[i].name, cases[i].part);
        workdir_flip(path, t->from + t->bytes - 1, 3);
        assert_int_equal(exchange_verify(&m), ST_FORMAT);
        assert_message_has("the file is damaged");
        assert_message_has(path);
        assert_int_equal(exchange_write(&m, &v, &exchange_nanogpt, out, &arena), ST_FORMAT);
        assert_message_has("the file is damaged");
        assert_false(file_exists(out));
        assert_int_equal(origin_load(&m, &l.engine, tensors, &iter), ST_FORMAT);
        assert_message_has("the file is damaged");
        exchange_close(&m);
    }
    learner_close(&l);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_bias),
        TEST(test_prefixes),
        TEST(test_masks),
        TEST(test_head),
        TEST(test_types),
        TEST(test_numbers),
        TEST(test_steps),
        TEST(test_no_state),
        TEST(test_groups),
        TEST(test_other_files),
        TEST(test_written_and_read_back),
        TEST(test_written_without_moments),
        TEST(test_a_wrong_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
