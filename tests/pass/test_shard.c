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

enum { VOCABULARY = 65 };

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
    m->config.model.n_layer = 3;
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

/* What a graph does with gradients, in its order. */
struct found {
    int reduces, scatters, awaits, first_reduce, last_matmul;
    int64_t reduced, awaited, largest; /* elements */
    bool early;                        /* a gradient was summed before it was written, or twice */
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
    check(OVERLAP_NONE, 40, 60, false); /* 12 in a block, and 4 */
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

/* With zero=1 each element of the parameters is updated by one rank, whose state has no gaps; all
 * ranks gather all weights. */
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
        assert_int_equal(own, shard_state_elements(&m.config, elements));
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
        cmocka_unit_test(test_one_parameter_after_another),  cmocka_unit_test(test_all_at_once),
        cmocka_unit_test(test_each_when_it_is_ready),        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_each_rank_updates_its_shards), cmocka_unit_test(test_once_per_update),
        cmocka_unit_test(test_one_rank_sums_nothing),        cmocka_unit_test(test_sums_in_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
