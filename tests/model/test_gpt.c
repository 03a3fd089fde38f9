/* Parameter counts, initial values, and the effects of vocabulary padding. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "backend/backend.h"
#include "base/str.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct shape {
    int64_t n_layer, n_head, n_embd, block_size, vocab, pad_vocab;
    bool bias;
    int64_t n_kv_head;
};

static const struct shape SHAKESPEARE = {6, 6, 384, 256, 65, 0, false, 0};
static const struct shape LAPTOP = {4, 4, 128, 64, 65, 0, false, 0};
static const struct shape GPT2 = {12, 12, 768, 1024, 50257, 0, true, 0};

static struct config config_of(const struct shape *s)
{
    struct config c = tiny_config();
    c.model = (struct config_model){.n_layer = s->n_layer,
                                    .n_head = s->n_head,
                                    .n_kv_head = s->n_kv_head,
                                    .n_embd = s->n_embd,
                                    .block_size = s->block_size,
                                    .bias = s->bias,
                                    .pad_vocab = s->pad_vocab};
    return c;
}

static void init(struct model *m, const struct shape *s, struct arena *a)
{
    struct config c = config_of(s);
    model_init(m, &c.model, s->vocab, 1, a);
}

static void test_counts(void **state)
{
    (void)state;
    struct arena a = {0};
    struct model m;
    init(&m, &SHAKESPEARE, &a);
    assert_int_equal(model_count(&m, false), 10646784);
    assert_int_equal(model_count(&m, true), 10646784 + 256 * 384);
    init(&m, &LAPTOP, &a);
    assert_int_equal(model_count(&m, false), 795904);
    init(&m, &GPT2, &a);
    assert_int_equal(model_count(&m, true), 124439808);
    struct shape padded = GPT2;
    padded.pad_vocab = 64;
    init(&m, &padded, &a);
    assert_int_equal(m.padded_vocab, 50304);
    assert_int_equal(model_count(&m, true), 124439808); /* padding does not count */
    padded.pad_vocab = 128;
    padded.vocab = 50304;
    init(&m, &padded, &a);
    assert_int_equal(m.padded_vocab, 50304); /* already a multiple */
    struct shape shared = GPT2;
    shared.n_kv_head = 4; /* k and v keep a third of their columns, in matrix and bias */
    init(&m, &shared, &a);
    assert_int_equal(model_count(&m, true), 124439808 - 12 * 2 * 512 * (768 + 1));
    shared.n_kv_head = 12;
    init(&m, &shared, &a);
    assert_int_equal(model_count(&m, true), 124439808);
    arena_release(&a);
}

static void groups(const struct shape *s, int tensors, int64_t elements, int others,
                   int64_t other_elements)
{
    struct arena a = {0};
    struct model m;
    int64_t count[2] = {0}, sum[2] = {0};
    init(&m, s, &a);
    for (int i = 0; i < m.parameters; i++) {
        const struct parameter *p = &m.parameter[i];
        count[p->decay]++;
        sum[p->decay] += type_elements(&p->type);
    }
    assert_int_equal(count[1], tensors);
    assert_int_equal(sum[1], elements);
    assert_int_equal(count[0], others);
    assert_int_equal(sum[0], other_elements);
    arena_release(&a);
}

static void test_decay_groups(void **state)
{
    (void)state;
    groups(&SHAKESPEARE, 26, 10740096, 13, 4992);
    groups(&LAPTOP, 18, 802944, 9, 1152);
    struct shape plain = GPT2;
    plain.bias = false;
    groups(&plain, 50, 124318464, 25, 19200);
    groups(&GPT2, 50, 124318464, 98, 121344);
}

/* Decayed parameters come first; each starts at a multiple of the alignment; they neither overlap
 * nor leave other gaps. */
static void test_layout(void **state)
{
    (void)state;
    struct arena a = {0};
    struct model m;
    const struct shape odd = {3, 2, 10, 7, 11, 0, true, 0};
    init(&m, &odd, &a);
    int64_t end = 0;
    for (int decay = 1; decay >= 0; decay--)
        for (int i = 0; i < m.parameters; i++) {
            const struct parameter *p = &m.parameter[i];
            if (p->decay != (bool)decay) continue;
            assert_int_equal(p->offset % RANGE_ALIGNMENT, 0);
            assert_true(p->offset >= end && p->offset - end < RANGE_ALIGNMENT);
            end = p->offset + type_elements(&p->type);
        }
    assert_true(m.elements >= end && m.elements - end < RANGE_ALIGNMENT);
    arena_release(&a);
}

/* nanoGPT's formula: 6 N + 12 L H Q T per token. */
static void test_flops_per_token(void **state)
{
    (void)state;
    struct arena a = {0};
    struct model m;
    init(&m, &GPT2, &a);
    double N = 124439808 - 1024 * 768;
    assert_true(model_flops_per_token(&m, 1024) == 6 * N + 12.0 * 12 * 12 * 64 * 1024);
    arena_release(&a);
}

/* Excludes the sums for biases. */
static double matmul_flops(const struct plan *p)
{
    double sum = 0;
    for (int id = 0; id < p->steps; id++) {
        const struct node *n = &p->graph->node[id];
        if (n->op == OP_MATMUL || n->op == OP_LINEAR) sum += p->step[id].cost.flops;
        if (n->op == OP_LINEAR) sum -= (double)type_elements(graph_type(p->graph, n->out[0]));
    }
    return sum;
}

/* All matmuls of a training step counted by hand: 2 FLOPs per FMA; forward once, backward twice;
 * slow attention computes the whole T x T matrix. */
static void test_matmul_flops_of_the_plan(void **state)
{
    (void)state;
    for (int flash = 0; flash < 2; flash++) {
        struct arena a = {0};
        struct model m;
        struct graph g;
        struct plan p;
        struct config c = config_of(&GPT2);
        c.data.batch_size = 12;
        c.plan.flash = flash;
        model_init(&m, &c.model, GPT2.vocab, 1, &a);
        hand_ok(program_graph(GRAPH_MICRO, &c, &m, NULL, NULL, NULL, &g, &a));
        const struct target null = {.backend = backend_find("null")};
        hand_ok(plan_build(&p, &g, &null, NULL, &a));
        double N = 12 * 1024, C = 768, L = 12, V = 50257, T = 1024;
        double linear = 2 * N * (L * (C * 3 * C + C * C + 2 * C * 4 * C) + C * V);
        double attention = flash ? 0 : 2 * N * L * 2 * T * C;
        double expected = 3 * (linear + attention);
        assert_true(fabs(matmul_flops(&p) / expected - 1) < 1e-12);
        plan_release(&p);
        arena_release(&a);
    }
}

/* Flash attention: 2 matmuls forward, 5 backward, over half of the matrix and its diagonal, for any
 * number of heads that share keys. */
static void attention_flops(int64_t kv_heads)
{
    struct arena a = {0};
    struct model m;
    struct graph g;
    struct config c = config_of(&LAPTOP);
    c.model.n_kv_head = kv_heads;
    c.data.batch_size = 12;
    model_init(&m, &c.model, LAPTOP.vocab, 1, &a);
    hand_ok(program_graph(GRAPH_MICRO, &c, &m, NULL, NULL, NULL, &g, &a));
    double pairs = 12 * 64 * 65 / 2, C = 128, H = 4, is = 0;
    for (int id = 0; id < g.nodes; id++)
        if (g.node[id].op == OP_ATTENTION || g.node[id].op == OP_ATTENTION_GRAD)
            is += graph_node_cost(&g, &g.node[id]).flops;
    assert_true(is == 4 * pairs * (14 * C + 12 * H));
    arena_release(&a);
}

static void test_attention_flops_of_the_plan(void **state)
{
    (void)state;
    attention_flops(0);
    attention_flops(1);
}

/* n_kv_head = n_head gives the same plan as n_kv_head = 0. */
static void test_equal_head_counts_give_the_same_plan(void **state)
{
    (void)state;
    struct arena a = {0};
    struct str text[2] = {{0}};
    for (int i = 0; i < 2; i++) {
        struct model m;
        struct graph g;
        struct config c = config_of(&LAPTOP);
        c.data.batch_size = 2;
        c.model.n_kv_head = i ? LAPTOP.n_head : 0;
        model_init(&m, &c.model, LAPTOP.vocab, 1, &a);
        hand_ok(program_graph(GRAPH_MICRO, &c, &m, NULL, NULL, NULL, &g, &a));
        for (int id = 0; id < g.nodes; id++)
            assert_int_equal(g.node[id].op == OP_ATTENTION ? g.node[id].attr.attention.kv_heads : 0,
                             0);
        graph_print(&g, &text[i]);
    }
    assert_string_equal(str_text(&text[0]), str_text(&text[1]));
    for (int i = 0; i < 2; i++) str_release(&text[i]);
    arena_release(&a);
}

struct moments {
    double mean, std;
};

static struct moments moments_of(const float *x, int64_t n)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i];
    double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    return (struct moments){mean, sqrt(squares / (double)n)};
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

static void test_initial_values(void **state)
{
    (void)state;
    struct arena a = {0};
    struct model m;
    struct shape s = LAPTOP;
    s.bias = true;
    init(&m, &s, &a);
    float *w = ARENA_NEW(&a, float, m.elements), *again = ARENA_NEW(&a, float, m.elements);
    memset(w, 0xff, sizeof(float) * (size_t)m.elements);
    model_init_weights(&m, w);
    for (int i = 0; i < m.parameters; i++) {
        const struct parameter *p = &m.parameter[i];
        int64_t n = type_elements(&p->type);
        struct moments is = moments_of(w + p->offset, n);
        if (p->type.rank == 2) {
            double std = ends_with(p->name, "c_proj.weight") ? 0.02 / sqrt(8) : 0.02;
            /* of the mean; that of the deviation is a little smaller */
            double error = std / sqrt((double)n);
            if (fabs(is.mean) > 4 * error || fabs(is.std - std) > 4 * error)
                fail_msg("%s: mean %g, std %g", p->name, is.mean, is.std);
        } else {
            double mean = ends_with(p->name, ".bias") ? 0 : 1;
            assert_true(is.mean == mean && is.std == 0);
        }
    }
    model_init_weights(&m, again);
    assert_memory_equal(w, again, sizeof(float) * (size_t)m.elements);
    m.seed++;
    model_init_weights(&m, again);
    assert_true(hand_distance(again, w, m.parameter[0].type.dim[0] * 128) > 1);
    /* Two tensors of the same shape have different values. */
    const struct parameter *fc = NULL;
    for (int i = 0; i < m.parameters; i++) {
        const struct parameter *p = &m.parameter[i];
        if (!ends_with(p->name, "c_fc.weight")) continue;
        if (fc) assert_true(hand_distance(w + p->offset, w + fc->offset, 1000) > 1);
        fc = p;
    }
    arena_release(&a);
}

/* The initial values do not depend on vocabulary padding. */
static void test_padding_keeps_initial_values(void **state)
{
    (void)state;
    struct arena a = {0};
    struct model plain, padded;
    struct shape s = LAPTOP;
    init(&plain, &s, &a);
    s.pad_vocab = 64;
    init(&padded, &s, &a);
    assert_int_equal(padded.padded_vocab, 128);
    float *w = ARENA_NEW(&a, float, plain.elements), *v = ARENA_NEW(&a, float, padded.elements);
    model_init_weights(&plain, w);
    model_init_weights(&padded, v);
    for (int i = 0; i < plain.parameters; i++) {
        const struct parameter *p = &plain.parameter[i], *q = &padded.parameter[i];
        assert_memory_equal(w + p->offset, v + q->offset,
                            sizeof(float) * (size_t)type_elements(&p->type));
    }
    for (int64_t i = 65 * 128; i < 128 * 128; i++)
        assert_true(v[padded.parameter[0].offset + i] == 0);
    arena_release(&a);
}

/* Padding rows are zero and stay zero; training is the same as without padding. */
static void test_padding_stays_zero(void **state)
{
    (void)state;
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++) {
        struct config c = tiny_config();
        struct tiny plain, padded;
        c.plan.fusion = (enum fusion)fusion;
        c.train.weight_decay = 0.5;
        tiny_open(&plain, &c, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
        c.model.pad_vocab = 64;
        tiny_open(&padded, &c, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
        for (int step = 0; step < 5; step++) {
            double a = (double)tiny_step(&plain, step, 1e-2);
            double b = (double)tiny_step(&padded, step, 1e-2);
            assert_true(fabs(a / b - 1) < 1e-5);
        }
        const struct parameter *wte = &padded.engine.program.model.parameter[0];
        assert_string_equal(wte->name, "wte.weight");
        for (int storage = STORAGE_WEIGHTS; storage <= STORAGE_MOMENT2; storage++) {
            const float *x = tiny_parameter(&padded, (enum storage)storage, wte);
            int64_t C = wte->type.dim[1];
            assert_true(x[(TINY_VOCAB - 1) * C] != 0);
            for (int64_t i = TINY_VOCAB * C; i < 64 * C; i++) assert_true(x[i] == 0);
        }
        tiny_close(&plain);
        tiny_close(&padded);
    }
}

/* The zeros between the parameters of a range stay zero under one AdamW over the range. */
static void test_gaps_stay_zero(void **state)
{
    (void)state;
    struct config c = tiny_config();
    struct tiny t;
    c.model.n_embd = 20; /* few parameters fill a multiple of 16 */
    c.model.bias = true;
    tiny_open(&t, &c, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
    for (int step = 0; step < 3; step++) tiny_step(&t, step, 1e-2);
    const struct model *m = &t.engine.program.model;
    bool *inside = ARENA_NEW(&t.arena, bool, m->elements);
    for (int i = 0; i < m->parameters; i++)
        for (int64_t k = 0; k < type_elements(&m->parameter[i].type); k++)
            inside[m->parameter[i].offset + k] = true;
    int gaps = 0;
    for (int storage = STORAGE_WEIGHTS; storage <= STORAGE_MOMENT2; storage++)
        for (int64_t i = 0; i < t.engine.storage.bytes[storage] / 4; i++) {
            if (inside[i]) continue;
            gaps++;
            assert_true(tiny_range(&t, (enum storage)storage)[i] == 0);
        }
    assert_true(gaps > 50);
    tiny_close(&t);
}

/* A range holds all that model_init_weights writes, including the zeros after the last
 * parameter. */
static void test_ranges_are_large_enough(void **state)
{
    (void)state;
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++) {
        struct config c = tiny_config();
        struct tiny t;
        c.model.n_embd = 20; /* the last parameter does not end at a multiple of 16 */
        c.plan.fusion = (enum fusion)fusion;
        tiny_open(&t, &c, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
        for (int storage = STORAGE_WEIGHTS; storage <= STORAGE_MOMENT2; storage++)
            assert_int_equal(t.engine.storage.bytes[storage], t.engine.program.model.elements * 4);
        tiny_close(&t);
    }
}

/* The first loss of an untrained model is close to that of uniform guessing. */
static void test_first_loss(void **state)
{
    (void)state;
    struct config c = tiny_config();
    struct tiny t;
    tiny_open(&t, &c, 1u << GRAPH_EVAL);
    assert_float_equal(tiny_loss(&t, GRAPH_EVAL, 0), logf(TINY_VOCAB), 0.1);
    tiny_close(&t);
}

/* Decoding one position at a time with a cache gives the logits of the whole window. */
static void decode(int64_t heads, int64_t kv_heads)
{
    struct config c = tiny_config();
    struct tiny t;
    c.model.bias = true;
    c.model.n_head = heads;
    c.model.n_kv_head = kv_heads;
    tiny_open(&t, &c, 1u << GRAPH_LOGITS | 1u << GRAPH_DECODE);
    struct engine *e = &t.engine;
    enum { T = 16 };
    int32_t tokens[T], positions[T], step = 0;
    float window[T * TINY_VOCAB], one[TINY_VOCAB];
    for (int i = 0; i < T; i++) tokens[i] = (i * i + 5) % TINY_VOCAB, positions[i] = i;
    hand_ok(plan_feed(&e->program.plan[GRAPH_LOGITS], "tokens", tokens, sizeof tokens));
    hand_ok(plan_feed(&e->program.plan[GRAPH_LOGITS], "positions", positions, sizeof positions));
    hand_ok(plan_feed(&e->program.plan[GRAPH_LOGITS], "step", &step, sizeof step));
    hand_ok(plan_run(&e->program.plan[GRAPH_LOGITS], NULL));
    hand_ok(plan_read(&e->program.plan[GRAPH_LOGITS], "logits", 0, window, sizeof window));
    for (int i = 0; i < T; i++) {
        hand_ok(plan_feed(&e->program.plan[GRAPH_DECODE], "tokens", &tokens[i], 4));
        hand_ok(plan_feed(&e->program.plan[GRAPH_DECODE], "positions", &positions[i], 4));
        hand_ok(plan_feed(&e->program.plan[GRAPH_DECODE], "step", &step, 4));
        hand_ok(plan_run(&e->program.plan[GRAPH_DECODE], NULL));
        hand_ok(plan_read(&e->program.plan[GRAPH_DECODE], "logits", 0, one, sizeof one));
        double apart = hand_distance(one, window + i * TINY_VOCAB, TINY_VOCAB);
        if (!(apart < 1e-5)) fail_msg("position %d: %.2e", i, apart);
    }
    tiny_close(&t);
}

static void test_decoding_equals_the_window(void **state)
{
    (void)state;
    decode(2, 0);
    decode(4, 2);
    decode(8, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_decay_groups),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_flops_per_token),
        cmocka_unit_test(test_matmul_flops_of_the_plan),
        cmocka_unit_test(test_attention_flops_of_the_plan),
        cmocka_unit_test(test_equal_head_counts_give_the_same_plan),
        cmocka_unit_test(test_initial_values),
        cmocka_unit_test(test_padding_keeps_initial_values),
        cmocka_unit_test(test_padding_stays_zero),
        cmocka_unit_test(test_gaps_stay_zero),
        cmocka_unit_test(test_ranges_are_large_enough),
        cmocka_unit_test(test_first_loss),
        cmocka_unit_test(test_decoding_equals_the_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
