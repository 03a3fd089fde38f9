/* Several steps in flight, whole steps compared with their parts, and captured steps. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "backend/backend.h"
#include "engine/sequence.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MICRO_STEPS = 3, STEPS = 4 };
static const unsigned training = 1u << GRAPH_MICRO | 1u << GRAPH_MICRO_MORE | 1u << GRAPH_UPDATE;

static struct config three_micro_steps(void)
{
    struct config c = tiny_config();
    c.train.gradient_accumulation_steps = MICRO_STEPS;
    return c;
}

enum { TOKENS = 3 * 16, POSITIONS = 16 };

static void feed_tokens(struct sequence *s, int part, int batch)
{
    int32_t tokens[TOKENS], targets[TOKENS];
    for (int i = 0; i < TOKENS; i++) {
        tokens[i] = (i * 5 + batch) % TINY_VOCAB;
        targets[i] = (i * 5 + batch + 5) % TINY_VOCAB;
    }
    hand_ok(sequence_feed(s, part, "tokens", tokens, sizeof tokens));
    hand_ok(sequence_feed(s, part, "targets", targets, sizeof targets));
}

/* Another batch for each micro-step of each step. */
static void feed(struct sequence *s, int step)
{
    int32_t positions[POSITIONS];
    for (int i = 0; i < POSITIONS; i++) positions[i] = i;
    for (int part = 0; part < s->parts - 1; part++) {
        int32_t counter = (int32_t)(step * (s->parts - 1) + part);
        feed_tokens(s, part, counter);
        hand_ok(sequence_feed(s, part, "positions", positions, sizeof positions));
        hand_ok(sequence_feed(s, part, "step", &counter, sizeof counter));
    }
    float lr = 0.01f * (float)(step + 1), bias1 = 1 - powf(0.9f, (float)step + 1),
          bias2 = 1 - powf(0.99f, (float)step + 1);
    hand_ok(sequence_feed(s, s->parts - 1, "lr", &lr, sizeof lr));
    hand_ok(sequence_feed(s, s->parts - 1, "bias1", &bias1, sizeof bias1));
    hand_ok(sequence_feed(s, s->parts - 1, "bias2", &bias2, sizeof bias2));
}

/* Runs STEPS steps with up to `ahead` of them in flight. */
static void take_steps(int ahead, struct step_result result[STEPS], float **ret_weights,
                       struct arena *a)
{
    struct config c = three_micro_steps();
    struct tiny t;
    struct sequence s;
    tiny_open(&t, &c, training);
    sequence_init_step(&s, &t.engine, &t.arena);
    for (int started = 0, done = 0; done < STEPS; done++) {
        for (; started < STEPS && started < done + ahead; started++) {
            feed(&s, started);
            hand_ok(sequence_start(&s, NULL));
        }
        assert_int_equal(sequence_in_flight(&s), started - done);
        hand_ok(sequence_wait_step(&s, &result[done]));
    }
    *ret_weights = tiny_copy(&t, STORAGE_WEIGHTS, a);
    sequence_close(&s);
    tiny_close(&t);
}

static void test_steps_in_flight_give_the_same(void **state)
{
    (void)state;
    struct arena a = {0};
    struct step_result one[STEPS], two[STEPS];
    float *weights_one, *weights_two;
    struct config c = three_micro_steps();
    struct tiny t;
    take_steps(1, one, &weights_one, &a);
    take_steps(SEQUENCE_IN_FLIGHT, two, &weights_two, &a);
    tiny_open(&t, &c, training);
    for (int i = 0; i < STEPS; i++) {
        assert_true(one[i].loss == two[i].loss && one[i].grad_norm == two[i].grad_norm);
        assert_true(isfinite(one[i].loss) && one[i].grad_norm > 0);
        if (i) assert_true(one[i].loss != one[i - 1].loss);
    }
    assert_memory_equal(weights_one, weights_two,
                        t.engine.program.model.elements * (int64_t)sizeof(float));
    tiny_close(&t);
    arena_release(&a);
}

/* The loss is the mean over all micro-steps, of weights before the update. */
static void test_loss_is_the_mean(void **state)
{
    (void)state;
    struct arena a = {0};
    struct step_result result[STEPS];
    float *weights;
    take_steps(1, result, &weights, &a);
    struct config c = three_micro_steps();
    struct tiny t;
    struct sequence s;
    tiny_open(&t, &c, training);
    sequence_init_step(&s, &t.engine, &t.arena);
    double sum = 0;
    float lr = 0;
    for (int batch = 0; batch < MICRO_STEPS; batch++) { /* all micro-steps on the same batch */
        struct step_result r;
        feed(&s, 0);
        hand_ok(sequence_feed(&s, MICRO_STEPS, "lr", &lr, sizeof lr));
        for (int part = 0; part < MICRO_STEPS; part++) feed_tokens(&s, part, batch);
        hand_ok(sequence_start(&s, NULL));
        hand_ok(sequence_wait_step(&s, &r));
        sum += r.loss;
    }
    assert_true(fabs(result[0].loss - sum / MICRO_STEPS) < 1e-6);
    sequence_close(&s);
    tiny_close(&t);
    arena_release(&a);
}

/* An input that is not fed again keeps its value; on the CPU only one step is in flight. */
static void test_inputs_stay(void **state)
{
    (void)state;
    struct config c = three_micro_steps();
    struct tiny t;
    struct sequence s;
    struct step_result first, again;
    float lr = 0;
    tiny_open(&t, &c, training);
    sequence_init_step(&s, &t.engine, &t.arena);
    feed(&s, 0);
    hand_ok(sequence_feed(&s, MICRO_STEPS, "lr", &lr, sizeof lr));
    hand_ok(sequence_start(&s, NULL));
    hand_ok(sequence_wait_step(&s, &first));
    hand_ok(sequence_start(&s, NULL));
    hand_ok(sequence_wait_step(&s, &again));
    assert_true(first.loss == again.loss && first.grad_norm == again.grad_norm);
    assert_int_equal(sequence_lookahead(&s), 0);
    sequence_close(&s);
    tiny_close(&t);
}

/* Sets an input in a child process; returns the signal that ended the child, 0 if none did. */
static int signal_of_feeding(struct sequence *s, int part, const char *input)
{
    float x = 0;
    int ended = 0;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        _exit(sequence_feed(s, part, input, &x, sizeof x) == ST_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    return WIFSIGNALED(ended) ? WTERMSIG(ended) : 0;
}

/* An unknown input name is a bug of the caller: without the abort, kernels would read old data. */
static void test_unknown_inputs_abort(void **state)
{
    (void)state;
    struct config c = three_micro_steps();
    struct tiny t;
    struct sequence staged, eval;
    tiny_open(&t, &c, training | 1u << GRAPH_EVAL);
    sequence_init_step(&staged, &t.engine, &t.arena);
    sequence_init_plan(&eval, &t.engine, GRAPH_EVAL, "loss", &t.arena);
    assert_int_equal(signal_of_feeding(&staged, MICRO_STEPS, "lr"), 0);
    assert_int_equal(signal_of_feeding(&staged, MICRO_STEPS, "rl"), SIGABRT);
    assert_int_equal(signal_of_feeding(&staged, 0, "lr"), SIGABRT); /* of another part */
    assert_int_equal(signal_of_feeding(&eval, 0, "step"), 0);
    assert_int_equal(signal_of_feeding(&eval, 0, "lr"), SIGABRT);
    sequence_close(&staged);
    sequence_close(&eval);
    tiny_close(&t);
}

static const struct backend *counted;
static int copies;

static enum status counting_copy(void *context, void *dst, const void *src, int64_t size)
{
    copies++;
    return counted->memory.copy(context, dst, src, size);
}

/* The inputs of a part have the same layout in its plan and in the staging buffer, so each part
 * needs one copy for its inputs and one for its result. */
static void test_inputs_are_copied_at_once(void **state)
{
    (void)state;
    struct config c = three_micro_steps();
    struct tiny t;
    struct sequence s;
    struct step_result result;
    tiny_open(&t, &c, training);
    counted = t.engine.backend;
    struct backend counting = *counted;
    counting.memory.copy = counting_copy;
    t.engine.backend = &counting;
    sequence_init_step(&s, &t.engine, &t.arena);
    feed(&s, 0);
    copies = 0;
    hand_ok(sequence_start(&s, NULL));
    hand_ok(sequence_wait_step(&s, &result));
    assert_int_equal(copies, 2 * (MICRO_STEPS + 1));
    sequence_close(&s);
    t.engine.backend = counted;
    tiny_close(&t);
}

/* --- one plan --- */

static int captures, replays, freed;

static enum status counting_begin(void *context)
{
    (void)context;
    captures++;
    return ST_OK;
}

static enum status counting_end(void *context, void **ret)
{
    (void)context;
    *ret = &captures;
    return ST_OK;
}

static enum status counting_replay(void *context, void *recording)
{
    (void)context;
    assert_ptr_equal(recording, &captures);
    replays++;
    return ST_OK;
}

static void counting_free(void *context, void *recording)
{
    (void)context, (void)recording;
    freed++;
}

static const struct backend_recording counting_recording = {counting_begin, counting_end,
                                                            counting_replay, counting_free};

static enum status look(void *user, const struct plan *p, int step)
{
    (void)p, (void)step;
    ++*(int *)user;
    return ST_OK;
}

/* With replay, the first run launches kernels, the second is captured, and later ones are replayed,
 * except runs with hooks. */
static void test_captured_once(void **state)
{
    (void)state;
    struct config c = tiny_config();
    struct tiny t;
    struct sequence s;
    const float *loss;
    int seen = 0;
    struct plan_hooks watching = {.user = &seen, .after = look};
    tiny_open(&t, &c, 1u << GRAPH_EVAL);
    t.config.plan.replay = true; /* the CPU cannot replay; this backend counts calls */
    const struct backend *real = t.engine.backend;
    struct backend counting = *real;
    counting.recording = &counting_recording;
    t.engine.backend = &counting;
    sequence_init_plan(&s, &t.engine, GRAPH_EVAL, "loss", &t.arena);
    for (int run = 0; run < 4; run++) {
        tiny_feed(&t, GRAPH_EVAL, run);
        hand_ok(sequence_start(&s, NULL));
        assert_int_equal(captures, run ? 1 : 0);
        assert_int_equal(replays, run);
    }
    hand_ok(sequence_start(&s, &watching));
    assert_int_equal(captures, 1);
    assert_int_equal(replays, 3);
    assert_int_equal(seen, plan_kernels(&t.engine.program.plan[GRAPH_EVAL]));
    hand_ok(sequence_wait(&s, &loss));
    assert_int_equal(sequence_in_flight(&s), 0);
    sequence_close(&s);
    assert_int_equal(freed, 1);
    t.engine.backend = real;
    tiny_close(&t);
}

static void feed_eval(struct sequence *s, int batch)
{
    int32_t positions[POSITIONS], counter = 0;
    for (int i = 0; i < POSITIONS; i++) positions[i] = i;
    feed_tokens(s, 0, batch);
    hand_ok(sequence_feed(s, 0, "positions", positions, sizeof positions));
    hand_ok(sequence_feed(s, 0, "step", &counter, sizeof counter));
}

/* Staged evaluations, two in flight, have the same losses as unstaged ones. Without the staging
 * memory of a training step, inputs are not staged. */
static void test_staged_evaluations(void **state)
{
    (void)state;
    struct config c = three_micro_steps();
    struct tiny t, alone;
    struct sequence direct, staged, bare;
    float want[4];
    const float *loss;
    tiny_open(&t, &c, training | 1u << GRAPH_EVAL);
    sequence_init_plan(&direct, &t.engine, GRAPH_EVAL, "loss", &t.arena);
    sequence_init_staged(&staged, &t.engine, GRAPH_EVAL, "loss", &t.arena);
    for (int batch = 0; batch < 4; batch++) {
        feed_eval(&direct, batch);
        hand_ok(sequence_start(&direct, NULL));
        assert_int_equal(sequence_in_flight(&direct), 0);
        hand_ok(sequence_wait(&direct, &loss));
        want[batch] = *loss;
    }
    assert_true(want[0] != want[1]);
    for (int batch = 0; batch < 5; batch++) {
        if (batch < 4) feed_eval(&staged, batch);
        if (batch < 4) hand_ok(sequence_start(&staged, NULL));
        if (!batch) continue;
        assert_int_equal(sequence_in_flight(&staged), batch < 4 ? 2 : 1);
        hand_ok(sequence_wait(&staged, &loss));
        assert_true(*loss == want[batch - 1]);
    }
    feed_eval(&staged, 2);
    hand_ok(sequence_start(&staged, NULL));
    sequence_drop(&staged); /* its result is not the next one */
    assert_int_equal(sequence_in_flight(&staged), 0);
    feed_eval(&staged, 3);
    hand_ok(sequence_start(&staged, NULL));
    hand_ok(sequence_wait(&staged, &loss));
    assert_true(*loss == want[3]);
    sequence_close(&staged);
    tiny_close(&t);
    tiny_open(&alone, &c, 1u << GRAPH_EVAL);
    sequence_init_staged(&bare, &alone.engine, GRAPH_EVAL, "loss", &alone.arena);
    feed_eval(&bare, 0);
    hand_ok(sequence_start(&bare, NULL));
    assert_int_equal(sequence_in_flight(&bare), 0);
    hand_ok(sequence_wait(&bare, &loss));
    assert_true(isfinite(*loss));
    tiny_close(&alone);
}

/* Two halves of a plan compute the same as the plan, and need no staged memory. */
static void test_parts_of_a_plan(void **state)
{
    (void)state;
    struct config c = tiny_config();
    struct tiny t;
    struct sequence half[2];
    const float *loss;
    tiny_open(&t, &c, 1u << GRAPH_MICRO);
    assert_int_equal(t.engine.storage.bytes[STORAGE_STAGED], 0);
    const struct plan *p = &t.engine.program.plan[GRAPH_MICRO];
    struct sequence_part forward = {GRAPH_MICRO, 0, plan_backward_start(p), "loss"};
    struct sequence_part backward = {GRAPH_MICRO, plan_backward_start(p), p->steps, NULL};
    sequence_init(&half[0], &t.engine, &forward, 1, &t.arena);
    sequence_init(&half[1], &t.engine, &backward, 1, &t.arena);
    float whole = tiny_loss(&t, GRAPH_MICRO, 1);
    const float *gradients = tiny_copy(&t, STORAGE_GRADIENTS, &t.arena);
    size_t bytes = (size_t)t.engine.program.model.elements * sizeof(float);
    memset(tiny_range(&t, STORAGE_GRADIENTS), 0, bytes);
    tiny_feed(&t, GRAPH_MICRO, 1);
    hand_ok(sequence_start(&half[0], NULL));
    hand_ok(sequence_wait(&half[0], &loss));
    assert_true(*loss == whole);
    for (int64_t i = 0; i < t.engine.program.model.elements; i++)
        assert_true(tiny_range(&t, STORAGE_GRADIENTS)[i] == 0);
    hand_ok(sequence_start(&half[1], NULL));
    hand_ok(sequence_wait(&half[1], &loss));
    assert_memory_equal(tiny_range(&t, STORAGE_GRADIENTS), gradients, bytes);
    tiny_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_in_flight_give_the_same),
        cmocka_unit_test(test_loss_is_the_mean),
        cmocka_unit_test(test_inputs_stay),
        cmocka_unit_test(test_unknown_inputs_abort),
        cmocka_unit_test(test_inputs_are_copied_at_once),
        cmocka_unit_test(test_captured_once),
        cmocka_unit_test(test_staged_evaluations),
        cmocka_unit_test(test_parts_of_a_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
