/* Grids and cells: lists, timed and refused cells, and parts of a step that add up to the step. */
#include "bench/bench_engine.h"
#include "bench/bench_grid.h"

#include "../support/hand.h"
#include "../support/tiny.h"
#include "base/interrupt.h"
#include "base/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <string.h>

static struct arena arena;

static int release(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static struct config config(void)
{
    struct config c, tiny = tiny_config();
    config_init(&c); /* sets every text */
    config_choose(&c, &(struct config_facts){0});
    c.model = tiny.model;
    c.data.batch_size = tiny.data.batch_size;
    c.plan = tiny.plan;
    threads_set(1);
    return c;
}

static unsigned lines_of(const char *words)
{
    unsigned lines;
    hand_ok(bench_read_lines(&lines, words));
    return lines;
}

static struct bench_grid grid(int steps, const char *phases)
{
    static struct bench_subject subject[2];
    subject[0] = (struct bench_subject){"small", config(), TINY_VOCAB};
    subject[1] = subject[0];
    subject[1].name = "large";
    subject[1].config.model.n_layer = 3;
    struct bench_grid g = {
        .subject = subject, .subjects = 2, .warmups = 1, .warmup = {1}, .steps = steps};
    g.lines = lines_of(phases);
    return g;
}

static void axis(struct bench_grid *g, const char *word)
{
    hand_ok(bench_add_axis(g, word, &arena));
}

static void refuses(enum status st, const char *sentence)
{
    assert_int_equal(st, ST_USAGE);
    if (!strstr(fail_message(), sentence)) fail_msg("%s", fail_message());
}

/* --- the grid -------------------------------------------------------------------------------*/

static void test_lists_make_a_grid(void **state)
{
    (void)state;
    struct bench_grid g = grid(2, "forward");
    struct bench_cell *cell;
    int cells;
    axis(&g, "--dtype=float32,bfloat16");
    axis(&g, "block_size=8,16,4");
    hand_ok(bench_read_warmups(&g, "0,5"));
    hand_ok(bench_grid_cells(&g, &cell, &cells, &arena));
    assert_int_equal(cells, 2 * 2 * 3 * 2);
    for (int i = 0; i < cells; i++) {
        static const int64_t lengths[] = {8, 16, 4};
        const struct bench_cell *c = &cell[i];
        assert_int_equal(c->warmup, i % 2 ? 5 : 0);
        assert_int_equal(c->config.model.block_size, lengths[i / 2 % 3]);
        assert_true(c->config.plan.dtype == (i / 6 % 2 ? PRECISION_BFLOAT16 : PRECISION_FLOAT32));
        assert_int_equal(c->config.model.n_layer, i / 12 ? 3 : 2);
        assert_int_equal(c->steps, 2);
    }
    assert_string_equal(bench_grid_name(&g, 3, &arena),
                        "small dtype=float32 block_size=16 warm-up 5");
    axis(&g, "--block_size=4"); /* the user's value replaces a suite's */
    hand_ok(bench_grid_cells(&g, &cell, &cells, &arena));
    assert_int_equal(cells, 2 * 2 * 2);
    assert_string_equal(bench_grid_name(&g, 7, &arena), "large dtype=bfloat16 warm-up 5");
    assert_true(bench_is_list("--dtype=a,b") && bench_is_list("flash=true,false"));
    assert_false(bench_is_list("--dtype=a") || bench_is_list("--out_dir=a,b"));
    assert_false(bench_is_list("a,b.conf"));
}

static void test_invalid_grids(void **state)
{
    (void)state;
    struct bench_grid g = grid(2, "forward");
    struct bench_cell *cell;
    unsigned lines;
    int cells;
    refuses(bench_add_axis(&g, "dtype=float32,float32", &arena), "given twice");
    refuses(bench_read_warmups(&g, "1,2,1"), "1 is given twice");
    refuses(bench_read_warmups(&g, "1,x"), "as in 0,1,2,5; not 1,x");
    refuses(bench_read_warmups(&g, "-1"), "--warmup takes");
    refuses(bench_read_warmups(&g, ""), "--warmup takes");
    refuses(bench_read_lines(&lines, "forward,back"), "not back");
    refuses(bench_read_lines(&lines, ""), "--phase takes");
    g = grid(0, "forward");
    refuses(bench_grid_cells(&g, &cell, &cells, &arena), "--steps must be between 1 and");
    g = grid(1, "forward");
    axis(&g, "n_head=2,5");
    refuses(bench_grid_cells(&g, &cell, &cells, &arena), "small n_head=5: n_embd = 32 is not");
    g = grid(1, "forward");
    for (int i = 0; i < 2; i++) {
        const char *word = i ? "seed=" : "n_layer=";
        for (int k = 1; k <= 17; k++)
            word = arena_printf(&arena, "%s%s%d", word, k > 1 ? "," : "", k);
        axis(&g, word);
    }
    refuses(bench_grid_cells(&g, &cell, &cells, &arena), "more than 512 cells");
}

/* Random ids are below the vocabulary of the cell, whichever key sets it. */
static void test_a_vocabulary_of_each_cell(void **state)
{
    (void)state;
    struct bench_grid g = grid(1, "forward");
    struct bench_cell *cell;
    int cells;
    axis(&g, "vocab_size=0,64,128");
    hand_ok(bench_grid_cells(&g, &cell, &cells, &arena));
    for (int i = 0; i < cells; i++) {
        const int64_t expected[] = {TINY_VOCAB, 64, 128};
        assert_int_equal(cell[i].vocab, expected[i % 3]);
    }
}

/* --- the cells ------------------------------------------------------------------------------*/

struct heard {
    double share;
    int calls;
    char order[256]; /* one letter per step, of its cell */
};

static void hear(void *user, double share, const char *what)
{
    struct heard *h = user;
    assert_true(share >= h->share && share <= 1);
    bool moved = share > h->share;
    h->share = share;
    if (moved && h->calls < 255) h->order[h->calls++] = what[0];
}

static const char *name(void *user, const struct bench_cell *c)
{
    (void)user;
    return c->config.model.n_layer == 3 ? "large" : "small";
}

static enum bench_order run_grid(struct bench_grid *g, struct bench_options o, struct heard *heard,
                                 struct bench_cell **ret_cell)
{
    int cells;
    enum bench_order order;
    *heard = (struct heard){0};
    o.each = hear;
    o.user = heard;
    o.name = name;
    hand_ok(bench_grid_cells(g, ret_cell, &cells, &arena));
    hand_ok(bench_cells_run(&o, *ret_cell, cells, &order, &arena));
    return order;
}

static void test_lines_of_cells(void **state)
{
    (void)state;
    struct bench_grid g = grid(5, "inference,forward,backward,update,step");
    struct bench_cell *cell;
    struct heard heard;
    assert_true(run_grid(&g, (struct bench_options){0}, &heard, &cell) == BENCH_ROUNDS);
    assert_string_equal(heard.order, "slsllssllssl"); /* one warm-up each; the order rotates */
    for (int i = 0; i < 2; i++) {
        const struct bench_cell *c = &cell[i];
        assert_null(c->reason);
        assert_true(c->bytes > 0 && c->tokens == 3 * 16);
        assert_true(fabs(c->loss - log(TINY_VOCAB)) < 0.2);
        for (int l = 0; l < BENCH_LINES; l++) {
            const struct stats *s = &c->line[l].ms;
            assert_int_equal(s->n, 5);
            if (l == BENCH_DIFFERENCE) continue; /* a difference of two noisy times */
            assert_true(s->min > 0 && s->min <= s->median && s->median <= s->p95);
            assert_true(c->line[l].first_ms > 0);
        }
        double by_means = c->line[BENCH_BOTH].ms.mean - c->line[BENCH_FORWARD].ms.mean;
        assert_true(fabs(c->line[BENCH_DIFFERENCE].ms.mean - by_means) < 1e-9);
        assert_true(c->line[BENCH_STEP].ms.min > c->line[BENCH_UPDATE].ms.min);
    }
    assert_true(cell[1].bytes > cell[0].bytes);
}

/* The loss of the first step is that of the initial weights, whatever other lines run. */
static void test_loss_is_of_initial_weights(void **state)
{
    static const char *const words[] = {"step", "update,step", "backward,update",
                                        "forward,backward,update,step"};
    double loss[COUNT_OF(words)];
    (void)state;
    for (int i = 0; i < COUNT_OF(words); i++) {
        struct bench_grid g = grid(2, words[i]);
        struct bench_cell *cell;
        struct heard heard;
        run_grid(&g, (struct bench_options){0}, &heard, &cell);
        loss[i] = cell[0].loss;
        assert_true(loss[i] == loss[0]);
    }
}

/* Called after each step: the number of threads is the cell's. */
static const char *check_threads(void *user, const struct bench_cell *c)
{
    struct heard *h = user;
    if (h->share > 0) assert_int_equal(threads_count(), c->config.plan.threads);
    return "";
}

static void test_threads_of_each_cell(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct bench_grid g = grid(3, "forward");
        struct heard heard = {0};
        struct bench_options o = {.order = i ? BENCH_ROUNDS : BENCH_AUTO,
                                  .each = hear,
                                  .name = check_threads,
                                  .user = &heard};
        struct bench_cell *cell;
        enum bench_order order;
        int cells;
        g.subjects = 1;
        axis(&g, "threads=1,2");
        hand_ok(bench_grid_cells(&g, &cell, &cells, &arena));
        hand_ok(bench_cells_run(&o, cell, cells, &order, &arena));
        assert_true(order ==
                    (i ? BENCH_ROUNDS : BENCH_TWICE)); /* rounds need equal numbers of threads */
        assert_true(heard.calls > 0);
    }
    threads_set(1);
}

static void test_lines_that_were_not_requested(void **state)
{
    (void)state;
    struct bench_grid g = grid(2, "update");
    struct bench_cell *cell;
    struct heard heard;
    run_grid(&g, (struct bench_options){0}, &heard, &cell);
    assert_int_equal(cell[0].line[BENCH_UPDATE].ms.n, 2);
    assert_int_equal(cell[0].line[BENCH_STEP].ms.n, 0);
    int64_t update = cell[0].bytes;
    g = grid(2, "step");
    run_grid(&g, (struct bench_options){0}, &heard, &cell);
    assert_true(cell[0].bytes > update); /* no activations */
    assert_int_equal(lines_of("forward"), 1u << BENCH_FORWARD);
    assert_true(lines_of("backward") >> BENCH_FORWARD & 1); /* needed for the difference */
}

static void test_orders(void **state)
{
    (void)state;
    struct bench_grid g = grid(4, "forward");
    struct bench_options o = {.order = BENCH_TWICE};
    struct bench_cell *cell;
    struct heard heard;
    run_grid(&g, o, &heard, &cell);
    assert_string_equal(heard.order, "ssslllllsss"); /* a warm-up before each turn */
    assert_true(cell[0].line[BENCH_FORWARD].ms.n == 4 && cell[1].line[BENCH_FORWARD].ms.n == 4);
    hand_ok(bench_read_warmups(&g, "0,2"));
    assert_true(run_grid(&g, (struct bench_options){0}, &heard, &cell) == BENCH_ONCE);
    assert_string_equal(heard.order, "ssssssssssllllllllll");
    /* Without warm-up the first step counts. */
    assert_true(cell[0].line[BENCH_FORWARD].first_ms <= cell[0].line[BENCH_FORWARD].ms.max);
    assert_int_equal(cell[1].line[BENCH_FORWARD].ms.n, 4);
    assert_string_equal(bench_order_name(BENCH_TWICE), "twice");
}

static void test_cells_that_do_not_fit_are_skipped(void **state)
{
    (void)state;
    struct bench_grid g = grid(2, "forward,backward");
    struct bench_cell *cell;
    struct heard heard;
    axis(&g, "block_size=16,512");
    axis(&g, "flash=false");
    run_grid(&g, (struct bench_options){0}, &heard, &cell);
    int64_t memory_limit = cell[3].bytes - 1;
    assert_true(cell[1].bytes < memory_limit);
    int64_t all = cell[0].bytes + cell[1].bytes + cell[2].bytes;
    enum bench_order order =
        run_grid(&g, (struct bench_options){.limit = memory_limit}, &heard, &cell);
    assert_true(order == (all > memory_limit / 10 * 9 ? BENCH_TWICE : BENCH_ROUNDS));
    assert_non_null(strstr(cell[3].reason, "needs "));
    assert_non_null(strstr(cell[3].reason, " of memory, the limit is "));
    assert_non_null(strstr(cell[3].reason, "; batch_size="));
    assert_non_null(strstr(cell[3].reason, " is the largest that fits"));
    assert_int_equal(cell[3].line[BENCH_FORWARD].ms.n, 0);
    for (int i = 0; i < 3; i++) assert_null(cell[i].reason);
    assert_int_equal(cell[2].line[BENCH_FORWARD].ms.n, 2);
    g = grid(2, "forward");
    axis(&g, "dtype=tfloat32"); /* not supported by a CPU */
    run_grid(&g, (struct bench_options){0}, &heard, &cell);
    assert_non_null(strstr(cell[0].reason, "tfloat32 needs a CUDA device"));
}

/* Where a step does not fit, forward and backward run; where these do not, inference does. */
static void test_memory_is_judged_by_phase(void **state)
{
    (void)state;
    struct bench_grid g = grid(2, "inference,forward,backward,update,step");
    struct bench_cell *cell;
    struct heard heard;
    static const char *const phases[] = {"inference", "inference,forward,backward"};
    int64_t bytes[2];
    for (int i = 0; i < 2; i++) { /* what each selection needs */
        g.lines = lines_of(phases[i]);
        run_grid(&g, (struct bench_options){0}, &heard, &cell);
        bytes[i] = cell[0].bytes;
    }
    assert_true(bytes[0] < bytes[1]);
    for (int i = 0; i < 2; i++) {
        unsigned fits = lines_of(phases[i]);
        g.lines = lines_of("inference,forward,backward,update,step");
        run_grid(&g, (struct bench_options){.limit = bytes[i]}, &heard, &cell);
        assert_null(cell[0].reason);
        assert_true(cell[0].bytes == bytes[i] && cell[0].lines == fits);
        assert_int_equal(cell[0].refused, g.lines & ~fits);
        for (int l = 0; l < BENCH_LINES; l++)
            assert_true(cell[0].line[l].ms.n == (fits >> l & 1 ? 2 : 0));
        assert_true(cell[0].line[BENCH_STEP].needs_bytes > bytes[1]);
        assert_non_null(strstr(cell[0].line[BENCH_STEP].reason, " of memory, the limit is "));
    }
    run_grid(&g, (struct bench_options){.limit = bytes[0] - 1}, &heard, &cell);
    assert_non_null(cell[0].reason);
    assert_int_equal(cell[0].refused, 0);
}

/* Sends Ctrl-C after step number `stop_at`. */
static int stop_at;

static void hear_and_stop(void *user, double share, const char *what)
{
    struct heard *h = user;
    hear(user, share, what);
    if (h->calls == stop_at && !interrupt_noted()) raise(SIGINT);
}

static enum bench_order run_until(int step, enum bench_order asked, struct bench_cell **ret_cell,
                                  struct heard *heard)
{
    struct bench_grid g = grid(4, "forward");
    struct bench_options o = {.order = asked, .each = hear_and_stop, .user = heard, .name = name};
    enum bench_order order;
    int cells;
    stop_at = step;
    *heard = (struct heard){0};
    hand_ok(bench_grid_cells(&g, ret_cell, &cells, &arena));
    interrupt_catch();
    hand_ok(bench_cells_run(&o, *ret_cell, cells, &order, &arena));
    interrupt_release();
    return order;
}

static void test_ctrl_c_keeps_samples(void **state)
{
    (void)state;
    struct bench_cell *cell;
    struct heard heard;
    run_until(5, BENCH_ROUNDS, &cell, &heard);
    assert_string_equal(heard.order, "slsll"); /* two of them are warm-ups */
    assert_true(!cell[0].reason && cell[0].line[BENCH_FORWARD].ms.n == 1);
    assert_true(!cell[1].reason && cell[1].line[BENCH_FORWARD].ms.n == 2);
    run_until(3, BENCH_ONCE, &cell, &heard);
    assert_string_equal(heard.order, "sss");
    assert_true(!cell[0].reason && cell[0].line[BENCH_FORWARD].ms.n == 2);
    assert_non_null(strstr(cell[1].reason, "not reached"));
    assert_int_equal(cell[1].line[BENCH_FORWARD].ms.n, 0);
    run_until(1, BENCH_ROUNDS, &cell, &heard);
    assert_true(cell[0].reason && cell[1].reason);
}

/* --- parts of a plan ------------------------------------------------------------------------*/

static void test_parts_make_the_whole(void **state)
{
    (void)state;
    for (int rung = 0; rung < 3; rung++) {
        struct tiny t;
        struct config c = config();
        c.plan.fusion = (enum fusion)rung;
        c.plan.recompute = RECOMPUTE_BLOCK;
        tiny_open(&t, &c, 1u << GRAPH_MICRO);
        struct plan *p = &t.engine.program.plan[GRAPH_MICRO];
        int64_t bytes = t.engine.program.model.elements * (int64_t)sizeof(float);
        int turn = plan_backward_start(p);
        assert_true(turn > 0 && turn < p->steps);
        for (int id = 0; id < turn; id++)
            assert_true(!p->step[id].kernel || p->graph->node[id].phase == PHASE_FORWARD);
        assert_true(p->graph->node[turn].phase == PHASE_BACKWARD);
        tiny_loss(&t, GRAPH_MICRO, 0);
        const float *whole = tiny_copy(&t, STORAGE_GRADIENTS, &arena);
        memset(tiny_range(&t, STORAGE_GRADIENTS), 0, (size_t)bytes);
        tiny_feed(&t, GRAPH_MICRO, 0);
        hand_ok(plan_run_part(p, 0, turn, NULL));
        for (int64_t i = 0; i < t.engine.program.model.elements; i++)
            assert_true(tiny_range(&t, STORAGE_GRADIENTS)[i] == 0);
        hand_ok(plan_run_part(p, turn, p->steps, NULL));
        assert_memory_equal(tiny_range(&t, STORAGE_GRADIENTS), whole, (size_t)bytes);
        tiny_close(&t);
    }
}

/* The loss after `rounds` rounds of all lines, the update included. */
static double loss_after(int rounds, unsigned lines)
{
    struct config c = config();
    struct bench_engine *b;
    double ms[BENCH_LINES];
    hand_ok(bench_engine_open(&b, &c, TINY_VOCAB, lines));
    for (int i = 0; i < rounds; i++) hand_ok(bench_engine_step(b, ms));
    double loss = bench_engine_loss(b);
    bench_engine_close(b);
    return loss;
}

/* Forward and backward apart give the same update as both together and as a whole step. */
static void test_lines_are_parts_of_a_step(void **state)
{
    (void)state;
    const unsigned inference = 1u << BENCH_INFERENCE, update = 1u << BENCH_UPDATE;
    double halves = loss_after(6, inference | 1u << BENCH_BACKWARD | update);
    double whole = loss_after(6, 1u << BENCH_BOTH | update), still = loss_after(6, inference);
    double step = loss_after(6, 1u << BENCH_STEP);
    assert_true(fabs(halves - whole) < 1e-6 && fabs(step - whole) < 1e-6);
    assert_true(fabs(still - whole) > 1e-5); /* the update changes the loss */
}

/* Every run is kept from the very first on; the opening and the first step are timed. */
static void test_every_step_is_kept(void **state)
{
    (void)state;
    struct bench_grid g = grid(3, "forward");
    struct bench_options o = {.order = BENCH_ONCE};
    struct bench_cell *cell;
    int cells;
    g.warmup[0] = 2;
    hand_ok(bench_grid_cells(&g, &cell, &cells, &arena));
    hand_ok(bench_cells_run(&o, cell, cells, NULL, &arena));
    for (int i = 0; i < cells; i++) {
        const struct bench_cell *c = &cell[i];
        const double *ms = c->line[BENCH_FORWARD].all_ms;
        if (c->reason) fail_msg("%s", c->reason);
        assert_int_equal(c->runs, 5);
        assert_true(ms[0] == c->line[BENCH_FORWARD].first_ms && ms[1] > 0);
        assert_true(stats_of(ms + 2, 3).mean == c->line[BENCH_FORWARD].ms.mean);
        assert_true(c->start[BENCH_OPENING].ms > 0 && c->start[BENCH_FIRST_STEP].ms >= ms[0]);
        assert_true(c->start[BENCH_FIRST_STEP].setup.compile_ms == 0); /* a CPU compiles nothing */
    }
}

/* A cell that warms up twice keeps its first warm-up and all samples. */
static void test_second_warm_up_is_left_out(void **state)
{
    (void)state;
    struct bench_grid g = grid(4, "forward");
    struct bench_options o = {.order = BENCH_TWICE};
    struct bench_cell *cell;
    int cells;
    g.warmup[0] = 2;
    hand_ok(bench_grid_cells(&g, &cell, &cells, &arena));
    assert_true(cells > 1);
    hand_ok(bench_cells_run(&o, cell, cells, NULL, &arena));
    for (int i = 0; i < cells; i++) {
        assert_int_equal(cell[i].runs, 6);
        assert_true(stats_of(cell[i].line[BENCH_FORWARD].all_ms + 2, 4).mean ==
                    cell[i].line[BENCH_FORWARD].ms.mean);
    }
}

/* A cell of `tokens` whose samples of a line take `ms`. */
static struct bench_cell made(int64_t tokens, double ms, enum bench_line line)
{
    enum { SAMPLES = 12 };
    double *x = ARENA_NEW(&arena, double, SAMPLES);
    for (int i = 0; i < SAMPLES; i++) x[i] = ms * (i % 3 ? 1 : 1.5);
    struct bench_cell c = {.tokens = tokens, .lines = 1u << line};
    c.config.train.gradient_accumulation_steps = 1;
    c.line[line].series = x;
    c.line[line].ms = stats_of(x, SAMPLES);
    return c;
}

/* A step has all micro-steps, forward and backward those of one. */
static void test_gradient_accumulation(void **state)
{
    (void)state;
    struct bench_grid g = grid(2, "backward,step");
    struct bench_options o = {0};
    struct bench_cell *cell;
    int cells;
    axis(&g, "gradient_accumulation_steps=1,6");
    hand_ok(bench_grid_cells(&g, &cell, &cells, &arena));
    hand_ok(bench_cells_run(&o, cell, cells, NULL, &arena));
    assert_int_equal(cell[1].tokens, 6 * cell[0].tokens);
    assert_true(cell[1].line[BENCH_STEP].ms.min > 2 * cell[0].line[BENCH_STEP].ms.min);
    assert_true(bench_line_tokens(&cell[1], BENCH_STEP) == (double)cell[1].tokens);
    assert_true(bench_line_tokens(&cell[1], BENCH_BOTH) == (double)cell[0].tokens);
}

static void test_speed_is_per_token(void **state)
{
    (void)state;
    struct bench_cell x = made(100, 1, BENCH_STEP), y = made(400, 2, BENCH_STEP);
    struct judgement j = bench_cells_judge(&x, &y, BENCH_STEP, BENCH_ROUNDS);
    assert_string_equal(judge_cell(&j, &arena), "2.00 x");
    x = made(100, 1, BENCH_UPDATE);
    y = made(400, 2, BENCH_UPDATE); /* the same work whatever the batch */
    j = bench_cells_judge(&x, &y, BENCH_UPDATE, BENCH_ROUNDS);
    assert_string_equal(judge_cell(&j, &arena), "0.50 x");
    x = made(100, -1, BENCH_DIFFERENCE);
    y = made(100, 2, BENCH_DIFFERENCE);
    assert_int_equal(bench_cells_judge(&x, &y, BENCH_DIFFERENCE, BENCH_ROUNDS).how, JUDGED_NOT);
    assert_int_equal(bench_cells_judge(&y, &x, BENCH_DIFFERENCE, BENCH_ROUNDS).how, JUDGED_NOT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_second_warm_up_is_left_out, release),
        cmocka_unit_test_teardown(test_every_step_is_kept, release),
        cmocka_unit_test_teardown(test_lists_make_a_grid, release),
        cmocka_unit_test_teardown(test_invalid_grids, release),
        cmocka_unit_test_teardown(test_a_vocabulary_of_each_cell, release),
        cmocka_unit_test_teardown(test_lines_of_cells, release),
        cmocka_unit_test_teardown(test_loss_is_of_initial_weights, release),
        cmocka_unit_test_teardown(test_threads_of_each_cell, release),
        cmocka_unit_test_teardown(test_lines_that_were_not_requested, release),
        cmocka_unit_test_teardown(test_gradient_accumulation, release),
        cmocka_unit_test_teardown(test_orders, release),
        cmocka_unit_test_teardown(test_cells_that_do_not_fit_are_skipped, release),
        cmocka_unit_test_teardown(test_memory_is_judged_by_phase, release),
        cmocka_unit_test_teardown(test_ctrl_c_keeps_samples, release),
        cmocka_unit_test_teardown(test_parts_make_the_whole, release),
        cmocka_unit_test_teardown(test_lines_are_parts_of_a_step, release),
        cmocka_unit_test_teardown(test_speed_is_per_token, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
