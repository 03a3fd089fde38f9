/* The pass `shard`: which gradients are summed together and when, in every order of overlap. */
#include "backend/backend.h"
#include "config/config.h"
#include "engine/memory.h"
#include "engine/program.h"
#include "engine/shards.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCABULARY = 65, LAYERS = 3 };

struct made {
    struct arena arena;
    struct config config;
    struct program program;
    struct target target;
};

static void make_rank(struct made *m, enum overlap overlap, int ranks, int micro_steps, int zero,
                      int rank)
{
    memset(m, 0, sizeof *m);
    config_init(&m->config);
    m->config.model.n_layer = LAYERS;
    m->config.model.n_head = 2;
    m->config.model.n_embd = 128;
    m->config.model.block_size = 16;
    m->config.model.bias = true;
    m->config.data.batch_size = 2;
    m->config.plan.device = DEVICE_CPU;
    m->config.plan.dtype = PRECISION_FLOAT32;
    m->config.plan.replay = REPLAY_FALSE;
    m->config.model.pad_vocab = 0;
    m->config.ranks.count = ranks;
    m->config.ranks.overlap = overlap;
    m->config.ranks.bucket_mb = 1;
    m->config.ranks.zero = zero;
    m->config.ranks.rank = rank;
    m->config.train.gradient_accumulation_steps = ranks * micro_steps;
    assert_int_equal(backend_target(backend_find("cpu"), TARGET_ANY, &m->target), ST_OK);
    enum status st = program_compile(&m->program, &m->config, VOCABULARY, &m->target, NULL,
                                     memory_kinds(&m->config, EXTENT_STEP), &m->arena);
    if (st != ST_OK) fail_msg("%s", fail_message());
}

static void make(struct made *m, enum overlap overlap, int ranks, int micro_steps)
{
    make_rank(m, overlap, ranks, micro_steps, 0, 0);
}

/* Counts of the nodes that work on gradients. */
struct found {
    int reduces, scatters, awaits, first_reduce, last_matmul;
    int64_t reduced, awaited, largest; /* elements */
    bool early;                        /* a gradient was summed or awaited out of order, or twice */
};

static struct found look(const struct made *m, enum graph_kind kind)
{
    const struct graph *g = &m->program.graph[kind];
    struct found f = {.first_reduce = g->nodes};
    char *state = ARENA_NEW((struct arena *)&m->arena, char, m->program.model.elements + 64);
    for (int id = 0; id < g->nodes; id++) {
        const struct node *n = &g->node[id];
        if (n->op == OP_MATMUL || n->op == OP_LINEAR) f.last_matmul = id;
        if (!op_writes(n->op)) continue;
        const struct node *leaf = graph_producer(g, n->in[0]);
        const struct type *t = graph_type(g, leaf->out[0]);
        if (leaf->attr.leaf.storage != STORAGE_GRADIENTS) continue;
        char *x = state + leaf->attr.leaf.offset, now = 0, next = 0;
        int64_t elements =
            n->op == OP_STORE || n->op == OP_ACCUMULATE ? range_elements(t) : type_elements(t);
        if (n->op == OP_STORE || n->op == OP_ACCUMULATE) next = 1;
        bool sums = n->op == OP_ALL_REDUCE || n->op == OP_REDUCE_SCATTER;
        if (sums) now = 1, next = 2;
        if (n->op == OP_AWAIT) now = 2, next = 3;
        for (int64_t i = 0; i < elements; i++) {
            f.early |= x[i] != now;
            x[i] = next;
        }
        if (sums && id < f.first_reduce) f.first_reduce = id;
        f.reduces += sums;
        f.scatters += n->op == OP_REDUCE_SCATTER;
        f.awaits += n->op == OP_AWAIT;
        if (sums) f.reduced += elements;
        if (n->op == OP_AWAIT) f.awaited += elements;
        if (sums && elements > f.largest) f.largest = elements;
        if (sums) assert_int_equal(n->attr.group.ranks, m->config.ranks.count);
    }
    return f;
}

static void check(enum overlap overlap, int least, int most, bool overlaps)
{
    struct made m;
    make(&m, overlap, 4, 1);
    struct found f = look(&m, GRAPH_MICRO);
    assert_false(f.early);
    assert_in_range(f.reduces, least, most);
    assert_int_equal(f.awaits, f.reduces);
    assert_int_equal(f.reduced, m.program.model.elements);
    assert_int_equal(f.awaited, m.program.model.elements);
    assert_int_equal(f.first_reduce < f.last_matmul, overlaps);
    assert_false(m.program.built[GRAPH_MICRO_LAST]);
    arena_release(&m.arena);
}

static void test_one_parameter_after_another(void **)
{
    check(OVERLAP_NONE, 40, 60, false); /* 12 parameters in each block, and 4 more */
}

static void test_all_at_once(void **)
{
    check(OVERLAP_FLAT, 1, 1, false);
}

static void test_each_when_it_is_ready(void **)
{
    check(OVERLAP_PARAMETER, 40, 60, true);
}

static void test_buckets(void **)
{
    check(OVERLAP_BUCKET, 3, 12, true);
}

/* With zero=1 one rank updates each element of the parameters, the state of a rank has no gaps, and
 * every rank gathers all weights. */
static void test_each_rank_updates_its_shards(void **)
{
    enum { RANKS = 3 };
    struct made m;
    int64_t updated = 0, state = 0, elements = 0;
    char *by = NULL;
    for (int rank = 0; rank < RANKS; rank++) {
        make_rank(&m, OVERLAP_BUCKET, RANKS, 1, 1, rank);
        struct found f = look(&m, GRAPH_MICRO);
        assert_false(f.early);
        assert_int_equal(f.scatters, f.reduces);
        assert_int_equal(f.reduced, m.program.model.elements);
        elements = m.program.model.elements;
        if (!by) by = calloc((size_t)elements, 1);
        const struct graph *g = &m.program.graph[GRAPH_UPDATE];
        int64_t own = 0, gathered = 0;
        for (int id = 0; id < g->nodes; id++) {
            const struct node *n = &g->node[id];
            int64_t size = n->n_in ? type_elements(graph_type(g, n->in[0])) : 0;
            if (n->op == OP_ALL_GATHER) gathered += size;
            if (n->op != OP_ADAMW) continue;
            const struct node *w = graph_producer(g, n->in[0]), *m1 = graph_producer(g, n->in[1]);
            assert_int_equal(m1->attr.leaf.offset, own);
            for (int64_t i = 0; i < size; i++) by[w->attr.leaf.offset + i]++;
            own += size;
        }
        assert_int_equal(gathered, elements);
        assert_int_equal(own, shard_state_elements(&m.config, &m.program.model));
        assert_int_equal(m.program.bytes[STORAGE_MOMENT1], own * (int64_t)sizeof(float));
        updated += own;
        state = max_i64(state, own);
        arena_release(&m.arena);
    }
    assert_int_equal(updated, elements);
    assert_true(state < elements / RANKS + 64 * 16);
    for (int64_t i = 0; i < elements; i++) assert_int_equal(by[i], 1);
    free(by);
}

/* --- zero=3 ----------------------------------------------------------------------------------- */

enum { UNITS = LAYERS + 2 }; /* embeddings, blocks, final norm */

/* What became of each element of STORAGE_UNIT: it was stored, is moved, has arrived. */
enum { UNKNOWN, STORED, MOVED, ARRIVED };

struct unit_facts {
    int gathers, sums;
    int ahead; /* gathers that were started before the one before was awaited */
    int bad;   /* elements that were read, summed or awaited too early */
    int64_t stored, gathered, summed; /* elements */
};

static void take_unit(char *state, int64_t n, char before, char after, struct unit_facts *f)
{
    for (int64_t i = 0; i < n; i++) {
        f->bad += state[i] != before;
        state[i] = after;
    }
}

/* The elements of a leaf of STORAGE_UNIT; NULL: it is none. */
static char *unit_state(const struct graph *g, value v, char *all, int64_t *ret_n)
{
    const struct node *leaf = graph_producer(g, v);
    *ret_n = type_elements(graph_type(g, v));
    bool unit = leaf->op == OP_LEAF && leaf->attr.leaf.storage == STORAGE_UNIT;
    return unit ? all + leaf->attr.leaf.offset : NULL;
}

static struct unit_facts look_at_units(const struct made *m, enum graph_kind kind)
{
    const struct graph *g = &m->program.graph[kind];
    struct unit_facts f = {0};
    char *all = ARENA_NEW((struct arena *)&m->arena, char, 8 * m->program.model.elements);
    int64_t n = 0;
    int pending = 0;
    for (int id = 0; id < g->nodes; id++) {
        const struct node *node = &g->node[id];
        char *to = op_writes(node->op) ? unit_state(g, node->in[0], all, &n) : NULL;
        bool gathers = node->op == OP_ALL_GATHER;
        if (node->op == OP_STORE && to) {
            take_unit(to, n, UNKNOWN, STORED, &f);
            f.stored += n;
        } else if (gathers) {
            int64_t own = n / m->config.ranks.count, at = m->config.ranks.rank * own;
            for (int64_t i = 0; i < n; i++)
                f.bad += to[i] != (i >= at && i < at + own ? STORED : UNKNOWN);
            memset(to, MOVED, (size_t)n);
            f.gathered += n;
            f.ahead += pending++ > 0;
            f.gathers++;
        } else if (node->op == OP_REDUCE_SCATTER) {
            take_unit(to, n, STORED, MOVED, &f);
            f.summed += n;
            f.sums++;
        } else if (node->op == OP_AWAIT && to) {
            take_unit(to, n, MOVED, ARRIVED, &f);
            pending -= strstr(node->scope, "weights") != NULL;
        }
        for (int i = op_writes(node->op); i < node->n_in; i++) {
            char *from = unit_state(g, node->in[i], all, &n);
            if (from) take_unit(from, n, ARRIVED, ARRIVED, &f);
        }
    }
    return f;
}

/* The most units that are in memory at once. */
static int units_alive(const struct made *m, enum graph_kind kind)
{
    const struct plan *p = &m->program.plan[kind];
    int most = 0;
    for (int id = 0; id < p->steps; id++) {
        int alive = 0;
        for (int v = 1; v < p->graph->values; v++) {
            const struct node *n = graph_producer(p->graph, (value){v});
            if (n->op != OP_LEAF || n->attr.leaf.storage != STORAGE_UNIT) continue;
            const struct span *s = &p->span[v];
            alive += s->root == v && s->first <= id && id <= s->last;
        }
        most = alive > most ? alive : most;
    }
    return most;
}

/* Of weights and gradients a rank stores its shards alone. */
static void check_leaves(const struct made *m, enum graph_kind kind)
{
    const struct graph *g = &m->program.graph[kind];
    int64_t own = m->program.model.elements / m->config.ranks.count;
    for (int id = 0; id < g->nodes; id++) {
        const struct node *n = &g->node[id];
        if (n->op != OP_LEAF) continue;
        enum storage s = n->attr.leaf.storage;
        if (s != STORAGE_WEIGHTS && s != STORAGE_GRADIENTS) continue;
        assert_true(n->attr.leaf.offset + type_elements(graph_type(g, n->out[0])) <= own);
    }
}

static void test_units_are_gathered_before_they_are_read(void **)
{
    struct made m;
    for (int overlap = OVERLAP_NONE; overlap <= OVERLAP_BUCKET; overlap += OVERLAP_BUCKET) {
        make_rank(&m, (enum overlap)overlap, 3, 1, 3, 1);
        bool ahead = overlap == OVERLAP_BUCKET;
        int64_t elements = m.program.model.elements;
        assert_int_equal(m.program.model.units, UNITS);
        struct unit_facts f = look_at_units(&m, GRAPH_MICRO);
        assert_int_equal(f.bad, 0);
        /* each unit in both directions; the head reads the embeddings once for both */
        assert_int_equal(f.gathers, 2 * UNITS);
        assert_int_equal(f.ahead, ahead ? 2 * UNITS - 1 : 0);
        assert_int_equal(f.sums, UNITS);
        assert_int_equal(f.summed, elements);
        assert_int_equal(f.gathered, 2 * elements);
        check_leaves(&m, GRAPH_MICRO);
        /* two of weights and two of gradients; of those nothing is ahead without overlap */
        assert_in_range(units_alive(&m, GRAPH_MICRO), 2, ahead ? 4 : 3);
        assert_int_equal(m.program.bytes[STORAGE_WEIGHTS], elements / 3 * 4);
        assert_int_equal(m.program.bytes[STORAGE_GRADIENTS], elements / 3 * 4 + 4);
        arena_release(&m.arena);
    }
}

static void test_units_of_evaluation(void **)
{
    struct made m;
    make_rank(&m, OVERLAP_BUCKET, 4, 1, 3, 3);
    struct program eval;
    assert_int_equal(
        program_compile(&eval, &m.config, VOCABULARY, &m.target, NULL, 1u << GRAPH_EVAL, &m.arena),
        ST_OK);
    m.program = eval;
    struct unit_facts f = look_at_units(&m, GRAPH_EVAL);
    assert_int_equal(f.bad, 0);
    assert_int_equal(f.gathers, UNITS + 1); /* the embeddings again for the head */
    assert_int_equal(f.sums, 0);
    check_leaves(&m, GRAPH_EVAL);
    assert_int_equal(units_alive(&m, GRAPH_EVAL), 2);
    arena_release(&m.arena);
}

/* Each micro-step sums; the first stores the shard, the others add to it. */
static void test_units_of_micro_steps(void **)
{
    static const struct {
        enum graph_kind kind;
        enum op op;
    } cases[] = {{GRAPH_MICRO, OP_STORE}, {GRAPH_MICRO_MORE, OP_ACCUMULATE}};
    struct made m;
    make_rank(&m, OVERLAP_BUCKET, 2, 3, 3, 0);
    assert_false(m.program.built[GRAPH_MICRO_LAST]);
    for (int c = 0; c < COUNT_OF(cases); c++) {
        const struct graph *g = &m.program.graph[cases[c].kind];
        int64_t taken = 0;
        assert_int_equal(look_at_units(&m, cases[c].kind).sums, UNITS);
        for (int id = 0; id < g->nodes; id++) {
            const struct node *n = &g->node[id];
            if (!op_writes(n->op)) continue;
            if (graph_producer(g, n->in[0])->attr.leaf.storage != STORAGE_GRADIENTS) continue;
            assert_int_equal(n->op, cases[c].op);
            taken += type_elements(graph_type(g, n->in[0]));
        }
        assert_int_equal(taken, m.program.model.elements / 2);
    }
    arena_release(&m.arena);
}

/* Each element is updated by one rank, and those decay that decay without shards. */
static void test_units_are_updated_once(void **)
{
    enum { RANKS = 3 };
    struct made m;
    int64_t decays = 0, decayed = 0, updated = 0, elements = 0;
    int kernels = 0;
    for (int rank = 0; rank < RANKS; rank++) {
        make_rank(&m, OVERLAP_BUCKET, RANKS, 1, 3, rank);
        const struct graph *g = &m.program.graph[GRAPH_UPDATE];
        const struct model *model = &m.program.model;
        int64_t own = 0;
        for (int i = 0; i < model->parameters && rank == 0; i++)
            if (model->parameter[i].decay) decays += range_elements(&model->parameter[i].type);
        for (int id = 0; id < g->nodes; id++) {
            const struct node *n = &g->node[id];
            assert_true(n->op != OP_ALL_GATHER);
            if (n->op != OP_ADAMW) continue;
            for (int i = 0; i < 4; i++) /* weights, moments, gradient */
                assert_int_equal(graph_producer(g, n->in[i])->attr.leaf.offset, own);
            own += type_elements(graph_type(g, n->in[0]));
            decayed += n->attr.adamw.decay_elements;
        }
        if (rank) assert_int_equal(plan_kernels(&m.program.plan[GRAPH_UPDATE]), kernels);
        kernels = plan_kernels(&m.program.plan[GRAPH_UPDATE]);
        assert_int_equal(own, shard_state_elements(&m.config, model));
        elements = model->elements;
        updated += own;
        arena_release(&m.arena);
    }
    assert_int_equal(updated, elements);
    assert_int_equal(decayed, decays);
}

/* Only the last of several micro-steps sums. */
static void test_once_per_update(void **)
{
    struct made m;
    make(&m, OVERLAP_BUCKET, 2, 3);
    assert_int_equal(look(&m, GRAPH_MICRO).reduces, 0);
    assert_int_equal(look(&m, GRAPH_MICRO_MORE).reduces, 0);
    struct found f = look(&m, GRAPH_MICRO_LAST);
    assert_false(f.early);
    assert_int_equal(f.reduced, m.program.model.elements);
    assert_int_equal(micro_steps_of(&m.config), 3);
    arena_release(&m.arena);
}

/* Bytes over the link of the graph that sums, on a GPU in bfloat16; -1: this build has none. */
static int64_t link_bytes(struct made *m, int micro_steps, int zero, enum reduce_dtype reduce)
{
    make_rank(m, OVERLAP_BUCKET, 2, micro_steps, zero, 0);
    if (!backend_find("cuda")) return -1;
    m->config.plan.device = DEVICE_CUDA;
    m->config.plan.dtype = PRECISION_BFLOAT16;
    m->config.ranks.reduce_dtype = reduce;
    assert_int_equal(backend_target(backend_find("cuda"), TARGET_ANY, &m->target), ST_OK);
    enum status st = program_compile(&m->program, &m->config, VOCABULARY, &m->target, NULL,
                                     memory_kinds(&m->config, EXTENT_STEP), &m->arena);
    if (st != ST_OK) fail_msg("%s", fail_message());
    const struct graph *g = &m->program.graph[micro_steps == 1 ? GRAPH_MICRO : GRAPH_MICRO_LAST];
    int64_t bytes = 0;
    for (int id = 0; id < g->nodes; id++) {
        const struct node *n = &g->node[id];
        if (n->op != OP_ALL_REDUCE && n->op != OP_REDUCE_SCATTER) continue;
        struct type t = *graph_type(g, n->in[0]);
        bytes += (int64_t)op_def(n->op)->cost(n, &t, &t).bytes;
    }
    return bytes;
}

/* Sums in bf16 are half the bytes; the range in f32 is there for several micro-steps alone, and the
 * update reads the sums. */
static void test_sums_in_bf16(void **)
{
    for (int steps = 1; steps <= 2; steps++)
        for (int zero = 0; zero <= 1; zero++) {
            struct made wide, half;
            int64_t bytes = link_bytes(&wide, steps, zero, REDUCE_FLOAT32);
            if (bytes < 0) skip();
            assert_true(bytes > 0);
            assert_int_equal(2 * link_bytes(&half, steps, zero, REDUCE_BFLOAT16), bytes);
            int64_t elements = half.program.model.elements;
            assert_int_equal(half.program.bytes[STORAGE_GRADIENTS], steps == 1 ? 0 : 4 * elements);
            assert_in_range(half.program.bytes[STORAGE_REDUCED], 2 * elements, 2 * elements + 64);
            const struct graph *g = &half.program.graph[GRAPH_UPDATE];
            int updates = 0;
            for (int id = 0; id < g->nodes; id++) {
                const struct node *n = &g->node[id];
                assert_false(n->op == OP_LEAF && n->attr.leaf.storage == STORAGE_GRADIENTS);
                updates += n->op == OP_ADAMW_COPY || n->op == OP_ADAMW;
            }
            assert_true(zero || updates == 1);
            arena_release(&wide.arena);
            arena_release(&half.arena);
        }
}

static void test_one_rank_sums_nothing(void **)
{
    struct made m;
    make(&m, OVERLAP_BUCKET, 1, 2);
    assert_int_equal(look(&m, GRAPH_MICRO).reduces, 0);
    assert_false(m.program.built[GRAPH_MICRO_LAST]);
    assert_true(m.program.built[GRAPH_MICRO_MORE]);
    arena_release(&m.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_parameter_after_another),
        cmocka_unit_test(test_all_at_once),
        cmocka_unit_test(test_each_when_it_is_ready),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_each_rank_updates_its_shards),
        cmocka_unit_test(test_once_per_update),
        cmocka_unit_test(test_one_rank_sums_nothing),
        cmocka_unit_test(test_sums_in_bf16),
        cmocka_unit_test(test_units_are_gathered_before_they_are_read),
        cmocka_unit_test(test_units_of_evaluation),
        cmocka_unit_test(test_units_of_micro_steps),
        cmocka_unit_test(test_units_are_updated_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
