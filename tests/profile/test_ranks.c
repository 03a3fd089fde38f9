/* A profile of ranks that are threads: what of their communication is hidden, waiting for a slow
 * rank, and the rows of the trace.
 * test: alone; it times steps */
#include "profile/profile.h"

#include "../support/cases.h"
#include "../support/hand.h"
#include "../support/tiny.h"
#include "../support/trace_check.h"
#include "backend/communicator.h"
#include "base/str.h"
#include "profile/file.h"
#include "profile/trace_file.h"
#include "profile/words.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { STEPS = 5, RANKS = 2 };

static struct arena arena;
static struct config config;
static struct engine engine;
static struct crew crew;
static struct machine machine;
static struct profile p;

/* Rank 1 comes so much later to the first kernel of each measured step. */
static int64_t late_us;
static bool begins;
static struct random_crew_watch watch;
static struct plan_hooks inner;

static void before(void *user, const struct plan *plan, int node)
{
    if (begins && late_us) usleep((useconds_t)late_us);
    begins = false;
    inner.before(user, plan, node);
}

static struct plan_hooks begin_step(void *user, const struct engine *e, int64_t mark)
{
    inner = watch.begin(user, e, mark);
    begins = true;
    return (struct plan_hooks){.user = inner.user, .before = before, .after = inner.after};
}

static void profile(enum overlap overlap)
{
    static struct random_crew_job job;
    struct config tiny = tiny_config();
    config_init(&config); /* sets every text */
    config_choose(&config, &(struct config_facts){0});
    config.model = tiny.model;
    config.data.batch_size = tiny.data.batch_size;
    config.plan = tiny.plan;
    config.train.gradient_accumulation_steps = 2 * RANKS;
    config.ranks.count = RANKS;
    config.ranks.overlap = overlap;
    struct profile_ranks *ranks = profile_ranks_new(&arena);
    watch = profile_ranks_watch(ranks);
    job = (struct random_crew_job){.config = &config, .vocab = TINY_VOCAB, .watch = watch};
    job.watch.begin = begin_step;
    crew_set_threads(&config);
    hand_ok(random_crew_open(&crew, &job));
    hand_ok(random_step_open(&engine, &config, TINY_VOCAB, crew.communicator, &arena));
    machine = (struct machine){.threads = 1, .name = "a machine", .library = "none"};
    machine.isa = "none";
    machine.date = "2026-01-31T08:00:00Z";
    machine.links = 1;
    machine.link[0] = (struct machine_link){RANKS, 4096, 1e10};
    struct profile_options o = {.warmup = 1, .steps = STEPS, .limit_ms = 60000, .ranks = ranks};
    o.machine = &machine;
    hand_ok(profile_run(&engine, &o, &p, &arena));
    assert_int_equal(p.steps, STEPS);
    assert_true(p.communication && p.communication->ranks == RANKS);
}

static int close_ranks(void **state)
{
    (void)state;
    crew_close(&crew);
    engine_close(&engine);
    arena_release(&arena);
    late_us = 0;
    return 0;
}

/* The time of rows of communication, and of no kernel at all. */
static double waiting_ms(void)
{
    return profile_family_ms(&p, PHASES_ALL, FAMILY_COMMUNICATION) +
           profile_family_ms(&p, PHASES_ALL, FAMILY_IDLE);
}

static int rows_of(enum op op)
{
    int rows = 0;
    for (int i = 0; i < p.rows; i++) rows += p.row[i].op == op && p.row[i].runs == STEPS;
    return rows;
}

static void check_sums(void)
{
    const struct profile_communication *c = p.communication;
    assert_true(c->collectives > 0 && c->all_ms > 0 && c->hidden_ms >= 0);
    assert_true(fabs(c->exposed_ms + c->hidden_ms - c->all_ms) < 1e-9 * c->all_ms);
    assert_true(c->exposed_ms <= waiting_ms() + 1e-9);
    assert_int_equal(rows_of(OP_ALL_REDUCE), c->collectives);
    assert_int_equal(rows_of(OP_AWAIT), c->collectives);
    double bytes = 0, waited = 0;
    for (int i = 0; i < c->collectives; i++) {
        const struct profile_collective *x = &c->collective[i];
        assert_true(x->op == OP_ALL_REDUCE && x->ms > 0 && x->waited_ms >= 0);
        assert_true(x->ceiling == 1e10);
        assert_true(x->link_bytes == (double)x->bytes * 2 * (RANKS - 1) / RANKS);
        bytes += (double)x->bytes;
        waited += x->waited_ms;
    }
    assert_true(fabs(waited - c->rank[0].waited_ms) < 1e-9 + 1e-9 * waited);
    /* every gradient is summed, once */
    assert_true(bytes == (double)engine.program.model.elements * sizeof(float));
}

static void test_none_hides_nothing(void **state)
{
    (void)state;
    profile(OVERLAP_NONE);
    check_sums();
    assert_true(p.communication->hidden_ms == 0);
}

static void test_flat_is_one_collective(void **state)
{
    (void)state;
    profile(OVERLAP_FLAT);
    check_sums();
    assert_int_equal(p.communication->collectives, 1);
    assert_true(p.communication->hidden_ms == 0);
}

/* The first collectives are started long before the backward pass ends. */
static void test_parameters_are_partly_hidden(void **state)
{
    (void)state;
    profile(OVERLAP_PARAMETER);
    check_sums();
    assert_true(p.communication->hidden_ms > 0);
}

static void test_the_slowest_rank(void **state)
{
    (void)state;
    late_us = 30000;
    profile(OVERLAP_FLAT);
    check_sums();
    const struct profile_rank *r = p.communication->rank;
    if (SANITIZED) SKIP("times say nothing with sanitizers");
    /* other programs may hold up rank 0 as well, in some steps */
    assert_true(r[0].waited_ms > 15 && r[0].waited_ms > 2 * r[1].waited_ms);
    assert_true(p.communication->exposed_ms >= r[0].waited_ms);
}

static void test_rows_of_the_trace(void **state)
{
    (void)state;
    struct trace_options o = {.steps = 2, .limit = 1 << 26};
    struct trace_said said;
    struct trace_facts facts;
    struct str text = {0};
    int kernels[2] = {0}, collectives[2] = {0};
    profile(OVERLAP_BUCKET);
    check_sums();
    trace_text(&p, &o, "0", &text, &said);
    const char *why = trace_check(str_text(&text), (size_t)text.len, &facts);
    if (why) fail_msg("%s", why);
    for (int i = 0; i < facts.events; i++) {
        const struct trace_event *e = &facts.event[i];
        int rank = e->pid - TRACE_DEVICE;
        if (rank < 0) continue;
        kernels[rank] += e->tid == TRACE_KERNELS;
        collectives[rank] += e->tid == TRACE_COMMUNICATION && !strncmp(trace_name(e), "ALL_", 4);
    }
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(kernels[r], 2 * p.communication->rank[1].kernels);
        assert_int_equal(collectives[r], 2 * p.communication->collectives);
    }
    trace_forget(&facts);
    str_release(&text);
}

static void test_what_is_written(void **state)
{
    (void)state;
    bool said = false;
    profile(OVERLAP_FLAT);
    struct profile_words w = words_of(&p, &arena);
    for (int i = 0; i < w.words; i++) said |= strstr(w.word[i].text, "ms exposed") != NULL;
    assert_true(said);
    json_t *j = profile_json(&p, "0"), *c = json_object_get(j, "communication");
    assert_true(json_array_size(json_object_get(c, "collectives")) == 1);
    assert_true(json_array_size(json_object_get(c, "waited_ms")) == RANKS);
    double all = json_number_value(json_object_get(c, "ms"));
    double parts = json_number_value(json_object_get(c, "hidden_ms")) +
                   json_number_value(json_object_get(c, "exposed_ms"));
    assert_true(all > 0 && fabs(all - parts) < 1e-5 * all);
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_none_hides_nothing, close_ranks),
        cmocka_unit_test_teardown(test_flat_is_one_collective, close_ranks),
        cmocka_unit_test_teardown(test_parameters_are_partly_hidden, close_ranks),
        cmocka_unit_test_teardown(test_the_slowest_rank, close_ranks),
        cmocka_unit_test_teardown(test_rows_of_the_trace, close_ranks),
        cmocka_unit_test_teardown(test_what_is_written, close_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
