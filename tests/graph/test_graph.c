/* Building of graphs, and the errors that verification finds. */
#include "../support/hand.h"
#include "base/str.h"
#include "graph/attr.h"
#include "graph/chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;
static struct graph g;

static int fresh(void **state)
{
    (void)state;
    arena = (struct arena){0};
    graph_init(&g, &arena);
    return 0;
}

static int done(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static void refuses(enum status st, const char *words)
{
    assert_int_not_equal(st, ST_OK);
    if (!strstr(fail_message(), words)) fail_msg("\"%s\" lacks \"%s\"", fail_message(), words);
}

static value input_2d(const char *name, int64_t a, int64_t b)
{
    return g_input(&g, name, type_2d(DT_F32, a, b));
}

static value state_1d(const char *name, int64_t n, int64_t offset)
{
    return g_leaf(&g, STORAGE_WEIGHTS, name, type_1d(DT_F32, n), offset);
}

static void test_types(void **state)
{
    (void)state;
    char text[TYPE_TEXT];
    struct type t = type_3d(DT_BF16, 12, 64, 128);
    assert_string_equal(type_text(text, &t), "bf16 (12,64,128)");
    assert_int_equal(type_elements(&t), 12 * 64 * 128);
    assert_int_equal(type_bytes(&t), 2 * 12 * 64 * 128);
    assert_int_equal(type_columns(&t), 128);
    assert_int_equal(type_rows(&t), 12 * 64);
    struct type large = type_4d(DT_F64, INT64_C(1) << 20, 1024, 1024, 4);
    assert_int_equal(type_bytes(&large), INT64_C(1) << 45); /* does not fit in 32 bits */
    type_text(text, &large);
    assert_string_equal(text, "f64 (1048576,1024,1024,4)");
    struct type same = type_of(DT_F32, 3, t.dim);
    assert_true(type_same_shape(&t, &same));
    assert_false(type_same(&t, &same));
}

static void test_broadcast_kinds(void **state)
{
    (void)state;
    const struct {
        struct type a, b;
        enum broadcast kind;
    } row[] = {
        {type_2d(DT_F32, 4, 5), type_2d(DT_F32, 4, 5), BROADCAST_NONE},
        {type_2d(DT_F32, 4, 5), type_1d(DT_F32, 1), BROADCAST_SCALAR},
        {type_1d(DT_F32, 5), type_3d(DT_F32, 1, 1, 1), BROADCAST_SCALAR},
        {type_2d(DT_F32, 4, 5), type_2d(DT_F32, 4, 1), BROADCAST_ROW},
        {type_3d(DT_F32, 2, 4, 5), type_3d(DT_F32, 2, 4, 1), BROADCAST_ROW},
        {type_2d(DT_F32, 4, 5), type_1d(DT_F32, 5), BROADCAST_TRAILING},
        {type_3d(DT_F32, 2, 4, 5), type_2d(DT_F32, 4, 5), BROADCAST_TRAILING},
        {type_2d(DT_F32, 4, 1), type_1d(DT_F32, 1), BROADCAST_SCALAR},
        {type_2d(DT_F32, 4, 5), type_1d(DT_F32, 4), BROADCAST_BAD},
        {type_2d(DT_F32, 4, 5), type_2d(DT_F32, 1, 5), BROADCAST_BAD},
        {type_1d(DT_F32, 5), type_2d(DT_F32, 4, 5), BROADCAST_BAD},
        {type_3d(DT_F32, 2, 4, 5), type_2d(DT_F32, 4, 1), BROADCAST_BAD},
        {type_1d(DT_F32, 1), type_1d(DT_F32, 5), BROADCAST_BAD},
    };
    for (int i = 0; i < COUNT_OF(row); i++) {
        enum broadcast kind = type_broadcast(&row[i].a, &row[i].b);
        if (kind != row[i].kind)
            fail_msg("row %d: %d instead of %d", i, (int)kind, (int)row[i].kind);
    }
}

static void test_first_failure_sticks(void **state)
{
    (void)state;
    value a = input_2d("a", 2, 3), b = input_2d("b", 4, 5);
    struct graph_scope here = graph_enter(&g, "h.3", 3);
    graph_enter(&g, "mlp", -1);
    value wrong = g_add(&g, a, b);
    graph_leave(&g, here);
    assert_int_equal(wrong.i, 0);
    int nodes = g.nodes;
    /* Model code may use the missing value: its calls add no nodes. */
    value later = g_gelu(&g, g_matmul(&g, wrong, a, false, true), false);
    later = g_sum_leading(&g, g_cast(&g, later, DT_F64), type_1d(DT_F32, 7));
    graph_output(&g, "later", later);
    g_input(&g, "c", type_scalar(DT_F32));
    assert_int_equal(g.nodes, nodes);
    assert_int_equal(g.outputs, 0);
    (void)(fail)(ST_IO, "other words in between"); /* cmocka has a macro of that name */
    enum status st = graph_status(&g);
    refuses(st, "ADD h.3.mlp: f32 (2,3) cannot be combined with f32 (4,5)");
    assert_int_equal(st, ST_USAGE);
    refuses(graph_verify(&g), "ADD h.3.mlp");
}

static void test_casts_back(void **state)
{
    (void)state;
    value x = g_input(&g, "x", type_1d(DT_BF16, 5)), y = g_input(&g, "y", type_1d(DT_F32, 5));
    value wide = g_cast(&g, x, DT_F32), narrow = g_cast(&g, y, DT_BF16);
    assert_int_equal(g_cast(&g, wide, DT_BF16).i, x.i);
    assert_int_not_equal(g_cast(&g, narrow, DT_F32).i, y.i); /* the cast to bf16 rounded y */
}

static void test_shape_rules_refuse(void **state)
{
    (void)state;
    struct {
        const char *words;
        int which;
    } row[] = {
        {"inner dimensions are 3 and 2", 0},
        {"cannot multiply", 1},
        {"the bias needs 3 elements", 2},
        {"weight and bias need 3 elements", 3},
        {"not packed q, k, v", 4},
        {"one integer target for each row", 5},
        {"a vocabulary of 4 does not fit 3", 6},
        {"differ in the number of elements", 7},
        {"integer ids", 8},
        {"is not the trailing dimensions of", 9},
        {"last two dimensions", 10},
        {"cannot be split into 3 x 0 heads", 11},
        {"cannot be split into 1 x 2", 12},
        {"cannot be combined with", 13},
        {"does not fit into", 14},
        {"cannot be split into 3 x 4 heads", 15},
        {"of 3 query heads and 2", 16},
        {"3 heads do not form groups", 17},
        {"with a cache is causal and scaled", 18},
    };
    for (int i = 0; i < COUNT_OF(row); i++) {
        graph_init(&g, &arena);
        value x = input_2d("x", 2, 3), v2 = g_input(&g, "v2", type_1d(DT_F32, 2));
        value x3 = g_input(&g, "x3", type_3d(DT_F32, 1, 2, 3));
        value ids = g_input(&g, "ids", type_1d(DT_I32, 2)), none = {0};
        value v3 = g_input(&g, "v3", type_1d(DT_F32, 3));
        assert_int_equal(graph_status(&g), ST_OK);
        switch (row[i].which) {
        case 0:
            g_matmul(&g, x, x, false, false);
            break;
        case 1:
            g_matmul(&g, x, x3, false, true);
            break;
        case 2:
            g_linear(&g, x, g_input(&g, "w", type_2d(DT_F32, 3, 3)), v2, false);
            break;
        case 3:
            g_layernorm(&g, x, v2, none, 1e-5);
            break;
        case 4:
            g_attention(&g, x3, ids, 2, 0, true, (struct dropout){0});
            break;
        case 5:
            g_cross_entropy(&g, x, v2, 3);
            break;
        case 6:
            g_cross_entropy(&g, x, ids, 4);
            break;
        case 7:
            g_reshape(&g, x, type_1d(DT_F32, 7));
            break;
        case 8:
            g_embed(&g, x, v2);
            break;
        case 9:
            g_sum_leading(&g, x, type_1d(DT_F32, 2));
            break;
        case 10:
            g_causal_mask(&g, x, 0);
            break;
        case 11:
            g_split_heads(&g, x3, 0, 0, 3);
            break;
        case 12:
            g_split_heads(&g, x3, 2, 0, 1);
            break;
        case 13:
            g_mul(&g, x, g_cast(&g, v3, DT_F64));
            break; /* types must match, too */
        case 14:
            g_store(&g, state_1d("w", 3, 0), v2);
            break;
        case 15:
            g_split_heads(&g, g_input(&g, "x10", type_3d(DT_F32, 1, 2, 10)), 4, 3, 3);
            break;
        case 16:
            g_attention(&g, g_input(&g, "x7", type_3d(DT_F32, 1, 2, 7)), ids, 3, 2, true,
                        (struct dropout){0});
            break;
        case 18: {
            union attr attr = {.attention = {.heads = 1, .causal = true, .unscaled = true}};
            value in[] = {g_input(&g, "cache", type_4d(DT_F32, 2, 1, 2, 1)),
                          g_input(&g, "now", type_3d(DT_F32, 1, 1, 3)), ids};
            graph_add(&g, OP_ATTENTION_CACHED, &attr, 3, in, NULL);
            break;
        }
        case 17: {
            value heads = g_input(&g, "heads", type_4d(DT_F32, 1, 3, 2, 2));
            g_merge_heads(&g, 2, 2, (value[]){heads, heads});
            break;
        }
        }
        refuses(graph_status(&g), row[i].words);
    }
}

static void test_scopes_and_layers(void **state)
{
    (void)state;
    struct graph_scope top = graph_enter(&g, "h.7", 7), inner;
    inner = graph_enter(&g, "attn", -1);
    value x = g_input(&g, "x", type_scalar(DT_F32));
    value y = g_exp(&g, x);
    graph_leave(&g, inner);
    value z = g_exp(&g, y);
    graph_leave(&g, top);
    value last = g_exp(&g, z);
    assert_string_equal(graph_producer(&g, x)->scope, "h.7.attn.x");
    assert_string_equal(graph_producer(&g, y)->scope, "h.7.attn");
    assert_int_equal(graph_producer(&g, y)->layer, 7);
    assert_string_equal(graph_producer(&g, z)->scope, "h.7");
    assert_string_equal(graph_producer(&g, last)->scope, "");
    assert_int_equal(graph_producer(&g, last)->layer, -1);
}

static void test_find(void **state)
{
    (void)state;
    value w = state_1d("w", 4, 0);
    value m = g_leaf(&g, STORAGE_MOMENT1, "w", type_1d(DT_F32, 4), 0);
    value y = g_exp(&g, w);
    graph_output(&g, "y", y);
    assert_int_equal(graph_find_leaf(&g, STORAGE_WEIGHTS, "w").i, w.i);
    assert_int_equal(graph_find_leaf(&g, STORAGE_MOMENT1, "w").i, m.i);
    assert_int_equal(graph_find_leaf(&g, STORAGE_MOMENT2, "w").i, 0);
    assert_int_equal(graph_find_leaf(&g, STORAGE_WEIGHTS, "v").i, 0);
    assert_int_equal(graph_find_output(&g, "y").i, y.i);
    assert_int_equal(graph_find_output(&g, "w").i, 0);
}

static void test_copy_keeps_marks(void **state)
{
    (void)state;
    g.phase = PHASE_BACKWARD;
    struct graph_scope top = graph_enter(&g, "h.2", 2);
    value x = g_input(&g, "x", type_2d(DT_F32, 2, 6));
    value y = g_reshape(&g, x, type_2d(DT_F32, 3, 4));
    graph_leave(&g, top);
    struct graph to;
    graph_init(&to, &arena);
    value *map = ARENA_NEW(&arena, value, g.values);
    map[x.i] = graph_copy(&to, &g, graph_producer(&g, x), map);
    value copy = graph_copy(&to, &g, graph_producer(&g, y), map);
    const struct node *n = graph_producer(&to, copy);
    assert_int_equal(n->phase, PHASE_BACKWARD);
    assert_int_equal(n->layer, 2);
    assert_string_equal(n->scope, "h.2");
    assert_true(type_same(graph_type(&to, copy), graph_type(&g, y)));
}

/* y = exp(x) + w is stored into w, after w is read. */
static void sound(void)
{
    value x = g_input(&g, "x", type_1d(DT_F32, 4)), w = state_1d("w", 4, 0);
    value y = g_add(&g, g_exp(&g, x), w);
    graph_output(&g, "y", y);
    g_store(&g, w, y);
    hand_ok(graph_verify(&g));
}

static struct node *nth(enum op op)
{
    for (int id = 0; id < g.nodes; id++)
        if (g.node[id].op == op) return &g.node[id];
    fail_msg("no %s", op_def(op)->name);
    return NULL;
}

static void test_verify_input_of_the_future(void **state)
{
    (void)state;
    sound();
    nth(OP_EXP)->in[0] = nth(OP_ADD)->out[0];
    refuses(graph_verify(&g), "input 0 is computed later");
    refuses(graph_verify(&g), "EXP");
    nth(OP_EXP)->in[0].i = g.values;
    refuses(graph_verify(&g), "input 0 is not a value");
    nth(OP_EXP)->in[0].i = 0;
    refuses(graph_verify(&g), "input 0 is not a value");
}

static void test_verify_types(void **state)
{
    (void)state;
    sound();
    struct type *t = &g.info[nth(OP_EXP)->out[0].i].type;
    *t = type_1d(DT_F64, 4);
    refuses(graph_verify(&g), "output 0 is f64 (4), its rule gives f32 (4)");
    *t = type_2d(DT_F32, 2, 2);
    refuses(graph_verify(&g), "its rule gives f32 (4)");
}

static void test_verify_arity_and_ownership(void **state)
{
    (void)state;
    sound();
    nth(OP_ADD)->n_in = 1;
    refuses(graph_verify(&g), "has 1 inputs");
    nth(OP_ADD)->n_in = 2;
    nth(OP_EXP)->n_out = 2;
    assert_int_not_equal(graph_verify(&g), ST_OK);
    nth(OP_EXP)->n_out = 1;
    hand_ok(graph_verify(&g));
    g.info[nth(OP_EXP)->out[0].i].producer = 0;
    refuses(graph_verify(&g), "output 0 belongs to node 0");
}

static void test_verify_outputs(void **state)
{
    (void)state;
    sound();
    g.output[0].v.i = g.values;
    refuses(graph_verify(&g), "output y is not a value");
    g.output[0].v.i = 0;
    refuses(graph_verify(&g), "output y is not a value");
}

static void test_verify_state_read_after_it_was_written(void **state)
{
    (void)state;
    sound();
    g_exp(&g, graph_find_leaf(&g, STORAGE_WEIGHTS, "w"));
    refuses(graph_verify(&g), "input 0 is already overwritten");
}

static void test_verify_new_state_may_be_read(void **state)
{
    (void)state;
    sound();
    g_exp(&g, nth(OP_STORE)->out[0]);
    hand_ok(graph_verify(&g));
}

static void test_verify_state_read_through_a_view(void **state)
{
    (void)state;
    value x = g_input(&g, "x", type_1d(DT_F32, 4)), w = state_1d("w", 4, 0);
    value view = g_reshape(&g, w, type_2d(DT_F32, 2, 2));
    g_store(&g, w, x);
    g_exp(&g, view);
    refuses(graph_verify(&g), "input 0 is already overwritten");
}

static void test_verify_state_read_through_another_leaf(void **state)
{
    (void)state;
    value x = g_input(&g, "x", type_1d(DT_F32, 16)), w = state_1d("w", 16, 16);
    value other = state_1d("other", 16, 0), all = state_1d("all", 32, 0);
    g_store(&g, w, x);
    g_exp(&g, other);
    hand_ok(graph_verify(&g));
    g_exp(&g, all);
    refuses(graph_verify(&g), "input 0 is already overwritten");
}

static void test_verify_writes_only_state(void **state)
{
    (void)state;
    value x = g_input(&g, "x", type_1d(DT_F32, 4));
    g_store(&g, x, g_exp(&g, x));
    refuses(graph_verify(&g), "writes a value that is not state");
    graph_init(&g, &arena);
    x = g_input(&g, "x", type_1d(DT_F32, 4));
    g_accumulate(&g, g_exp(&g, x), x);
    refuses(graph_verify(&g), "writes a value that is not state");
}

/* A lookup reads only the rows that it selects. */
static void test_cost_of_a_lookup(void **state)
{
    (void)state;
    value table = input_2d("table", 1000, 8), ids = g_input(&g, "ids", type_1d(DT_I32, 10));
    struct cost c = graph_node_cost(&g, graph_producer(&g, g_embed(&g, table, ids)));
    assert_true(c.bytes == 10 * 8 * 4 + 10 * 8 * 4 + 10 * 4);
    assert_true(c.flops == 0);
}

static double bytes_of(value v)
{
    return graph_node_cost(&g, graph_producer(&g, v)).bytes;
}

/* State that is only written has no cost of reading. */
static void test_cost_of_state(void **state)
{
    (void)state;
    enum { N = 1000, SCALARS = 4 * 4 };
    const struct type t = type_1d(DT_F32, N);
    value in[9];
    for (int i = 0; i < 9; i++) in[i] = g_leaf(&g, STORAGE_WEIGHTS, "w", t, (int64_t)i * N);
    in[3] = g_leaf(&g, STORAGE_COPY, "copy", type_1d(DT_BF16, N), 0);
    for (int i = 5; i < 9; i++) in[i] = g_input(&g, "scalar", type_scalar(DT_F32));
    value plain[] = {in[0], in[1], in[2], in[4], in[5], in[6], in[7], in[8]};
    union attr attr = {0};
    assert_true(bytes_of(graph_add(&g, OP_ADAMW, &attr, 8, plain, NULL)) == 28 * N + SCALARS);
    assert_true(bytes_of(graph_add(&g, OP_ADAMW_COPY, &attr, 9, in, NULL)) == 30 * N + SCALARS);
    assert_true(bytes_of(g_store(&g, in[0], in[4])) == 8 * N);
    assert_true(bytes_of(g_accumulate(&g, in[0], in[4])) == 12 * N);
}

/* Only the half of the scores that is not masked is read, but the whole result is written. */
static void test_cost_of_masked_scores(void **state)
{
    (void)state;
    enum { HEADS = 6, T = 8, ALL = HEADS * T * T, OPEN = HEADS * T * (T + 1) / 2, STEP = 4 };
    const struct type t = type_4d(DT_F32, 2, 3, T, T);
    value s = g_input(&g, "scores", t), p = g_input(&g, "p", t);
    value step = g_input(&g, "step", type_scalar(DT_I32)), in[] = {s, p, step};
    for (int drop = 0; drop < 2; drop++)
        for (int causal = 0; causal < 2; causal++) {
            union attr attr = {.score = {1, causal, {.threshold = drop ? 51 : 0}}};
            double read = causal ? OPEN : ALL, each = 6 + drop;
            value y = graph_add(&g, OP_SCORE_SOFTMAX, &attr, 2, (value[]){s, step}, NULL);
            assert_true(bytes_of(y) == 4 * (read + (1 + drop) * ALL) + STEP);
            assert_true(graph_node_cost(&g, graph_producer(&g, y)).flops == each * read);
            y = graph_add(&g, OP_SCORE_SOFTMAX_GRAD, &attr, 3, in, NULL);
            assert_true(bytes_of(y) == 4 * (2 * read + ALL) + STEP);
            assert_true(graph_node_cost(&g, graph_producer(&g, y)).flops == each * read);
        }
}

/* Attention has T pairs per query without a mask, and (T + 1) / 2 on average with a causal mask. */
static void test_cost_of_attention(void **state)
{
    (void)state;
    enum { B = 2, T = 7, H = 3, D = 4, C = H * D };
    value in[] = {g_input(&g, "qkv", type_3d(DT_F32, B, T, 3 * C)),
                  g_input(&g, "step", type_scalar(DT_I32))};
    for (int k = 0; k < 4; k++) {
        bool causal = k & 1;
        double pairs = B * (causal ? T * (T + 1) / 2 : T * T);
        union attr attr = {.attention = {H, causal, .unscaled = k & 2}};
        const struct node *n = graph_producer(&g, graph_add(&g, OP_ATTENTION, &attr, 2, in, NULL));
        assert_true(graph_node_cost(&g, n).flops == pairs * (4 * C + 5 * H));
    }
}

static void test_print(void **state)
{
    (void)state;
    sound();
    struct str s = {0};
    graph_print(&g, &s);
    assert_non_null(strstr(str_text(&s), "# forward\n"));
    assert_non_null(strstr(str_text(&s), "%3 = EXP %1  f32 (4)"));
    assert_non_null(strstr(str_text(&s), "LEAF [weights]  f32 (4)  w"));
    assert_non_null(strstr(str_text(&s), "output y = %4"));
    str_release(&s);
    graph_print_dot(&g, &s);
    assert_non_null(strstr(str_text(&s), "n2 -> n3"));
    str_release(&s);
}

static const char *attr_text(enum op op, union attr attr, struct numerics n)
{
    static struct str s;
    str_release(&s);
    attr_print(op, &attr, &n, &s);
    return str_text(&s);
}

static void test_print_attributes(void **state)
{
    (void)state;
    const struct numerics none = {0}, all = {true, true, true};
    union attr attention = {.attention = {12, true, {DROPOUT_ATTENTION, 51, 1337, 3}}};
    assert_string_equal(attr_text(OP_ATTENTION, attention, none),
                        " [heads 12 causal drop 51/256 site 3 seed 1337 of scores]");
    attention.attention.drop.threshold = 0; /* no dropout, so the site is not printed */
    attention.attention.kv_heads = 4;
    assert_string_equal(attr_text(OP_ATTENTION, attention, all),
                        " [heads 12 kv_heads 4 causal tf32 deterministic portable]");
    attention.attention.unscaled = true;
    assert_string_equal(attr_text(OP_ATTENTION, attention, none),
                        " [heads 12 kv_heads 4 causal unscaled]");
    assert_string_equal(attr_text(OP_MATMUL, (union attr){0}, none), "");
    assert_string_equal(attr_text(OP_MATMUL, (union attr){.matmul = {.tb = true, .packed = 64}},
                                  (struct numerics){.portable = true}),
                        " [tb packed 64 portable]");
    assert_string_equal(attr_text(OP_COLUMN_MASK, (union attr){.column_mask = {0, 65}}, none),
                        " [from 65 value 0]");
    assert_string_equal(attr_text(OP_GELU, (union attr){0}, none), " [erf]");
    assert_string_equal(attr_text(OP_GELU, (union attr){.gelu.tanh = true}, none), " [tanh]");
    assert_string_equal(attr_text(OP_SPLIT, (union attr){.split = {{3, 4}}}, none),
                        " [columns 3+4]");
    assert_string_equal(attr_text(OP_QUANTIZE, (union attr){.quantize = {DT_E5M2, 21}}, none),
                        " [e5m2 first 21]");
    struct chain chain = {.steps = 2,
                          .step = {{.op = OP_SCALE, .attr.constant.value = 0.5}, {.op = OP_ADD}}};
    assert_string_equal(attr_text(OP_CHAIN, (union attr){.chain = &chain}, none),
                        " [steps SCALE value 0.5, ADD]");
}

static void test_same_attributes(void **state)
{
    (void)state;
    union attr a = {.drop = {DROPOUT_POINTWISE, 51, 1, 2}}, b = a;
    assert_true(attr_same(OP_DROPOUT, &a, &b, true));
    b.drop.site = 3;
    assert_false(attr_same(OP_DROPOUT, &a, &b, true));
    assert_true(attr_same(OP_DROPOUT, &a, &b, false));
    b.drop.threshold = 52;
    assert_false(attr_same(OP_DROPOUT, &a, &b, false));
    struct chain x = {.steps = 1, .step = {{.op = OP_SCALE, .attr.constant.value = 1}}}, y = x;
    union attr c = {.chain = &x}, d = {.chain = &y};
    assert_true(attr_same(OP_CHAIN, &c, &d, true));
    y.step[0].attr.constant.value = 2;
    assert_false(attr_same(OP_CHAIN, &c, &d, true));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_types),
        TEST(test_broadcast_kinds),
        TEST(test_first_failure_sticks),
        TEST(test_casts_back),
        TEST(test_shape_rules_refuse),
        TEST(test_scopes_and_layers),
        TEST(test_find),
        TEST(test_copy_keeps_marks),
        TEST(test_print_attributes),
        TEST(test_same_attributes),
        TEST(test_verify_input_of_the_future),
        TEST(test_verify_types),
        TEST(test_verify_arity_and_ownership),
        TEST(test_verify_outputs),
        TEST(test_verify_state_read_after_it_was_written),
        TEST(test_verify_new_state_may_be_read),
        TEST(test_verify_state_read_through_a_view),
        TEST(test_verify_state_read_through_another_leaf),
        TEST(test_verify_writes_only_state),
        TEST(test_cost_of_a_lookup),
        TEST(test_cost_of_state),
        TEST(test_cost_of_masked_scores),
        TEST(test_cost_of_attention),
        TEST(test_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
