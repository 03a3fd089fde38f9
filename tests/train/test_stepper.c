/* Steps that are started before the last one was waited for, and whole steps against their parts. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "backend/backend.h"
#include "train/stepper.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

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

static void feed_tokens(struct stepper *s, int64_t run, int batch)
{
    int32_t tokens[TOKENS], targets[TOKENS];
    for (int i = 0; i < TOKENS; i++) {
        tokens[i] = (i * 5 + batch) % TINY_VOCAB;
        targets[i] = (i * 5 + batch + 5) % TINY_VOCAB;
    }
    stepper_feed(s, run, "tokens", tokens, sizeof tokens);
    stepper_feed(s, run, "targets", targets, sizeof targets);
}

/* Another batch for each micro-step of each step. */
static void feed(struct stepper *s, int step)
{
    int32_t positions[POSITIONS];
    for (int i = 0; i < POSITIONS; i++) positions[i] = i;
    for (int64_t run = 0; run < s->micro_steps; run++) {
        int32_t counter = (int32_t)(step * s->micro_steps + run);
        feed_tokens(s, run, counter);
        stepper_feed(s, run, "positions", positions, sizeof positions);
        stepper_feed(s, run, "step", &counter, sizeof counter);
    }
    float lr = 0.01f * (float)(step + 1), bias1 = 1 - powf(0.9f, (float)step + 1),
          bias2 = 1 - powf(0.99f, (float)step + 1);
    stepper_feed(s, s->micro_steps, "lr", &lr, sizeof lr);
    stepper_feed(s, s->micro_steps, "bias1", &bias1, sizeof bias1);
    stepper_feed(s, s->micro_steps, "bias2", &bias2, sizeof bias2);
}

/* STEPS steps, of which `ahead` are started before the first is waited for. */
static void take_steps(int ahead, struct step_result result[STEPS], float **ret_weights,
                       struct arena *a)
{
    struct config c = three_micro_steps();
    struct tiny t;
    struct stepper s;
    tiny_open(&t, &c, training);
    stepper_init(&s, &t.engine, &t.arena);
    for (int started = 0, done = 0; done < STEPS; done++) {
        for (; started < STEPS && started < done + ahead; started++) {
            feed(&s, started);
            hand_ok(stepper_start(&s, NULL));
        }
        assert_int_equal(stepper_flying(&s), started - done);
        hand_ok(stepper_wait(&s, &result[done]));
    }
    *ret_weights = tiny_copy(&t, STORAGE_WEIGHTS, a);
    stepper_close(&s);
    tiny_close(&t);
}

static void test_ahead_is_the_same(void **state)
{
    (void)state;
    struct arena a = {0};
    struct step_result one[STEPS], two[STEPS];
    float *weights_one, *weights_two;
    struct config c = three_micro_steps();
    struct tiny t;
    take_steps(1, one, &weights_one, &a);
    take_steps(STEPPER_AHEAD, two, &weights_two, &a);
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
    struct stepper s;
    tiny_open(&t, &c, training);
    stepper_init(&s, &t.engine, &t.arena);
    double sum = 0;
    float lr = 0;
    for (int batch = 0; batch < MICRO_STEPS; batch++) { /* all micro-steps on the batch of one */
        struct step_result r;
        feed(&s, 0);
        stepper_feed(&s, MICRO_STEPS, "lr", &lr, sizeof lr);
        for (int run = 0; run < MICRO_STEPS; run++) feed_tokens(&s, run, batch);
        hand_ok(stepper_start(&s, NULL));
        hand_ok(stepper_wait(&s, &r));
        sum += r.loss;
    }
    assert_true(fabs(result[0].loss - sum / MICRO_STEPS) < 1e-6);
    stepper_close(&s);
    tiny_close(&t);
    arena_release(&a);
}

/* What is not fed anew stays, and a step with nothing on its way has no lead on the host's own processor. */
static void test_inputs_stay(void **state)
{
    (void)state;
    struct config c = three_micro_steps();
    struct tiny t;
    struct stepper s;
    struct step_result first, again;
    float lr = 0;
    tiny_open(&t, &c, training);
    stepper_init(&s, &t.engine, &t.arena);
    feed(&s, 0);
    stepper_feed(&s, MICRO_STEPS, "lr", &lr, sizeof lr);
    stepper_feed(&s, 0, "no such input", &lr, sizeof lr);
    hand_ok(stepper_start(&s, NULL));
    hand_ok(stepper_wait(&s, &first));
    hand_ok(stepper_start(&s, NULL));
    hand_ok(stepper_wait(&s, &again));
    assert_true(first.loss == again.loss && first.grad_norm == again.grad_norm);
    assert_int_equal(stepper_lead(&s), 0);
    stepper_close(&s);
    tiny_close(&t);
}

static const struct backend *counted;
static int copies;

static enum status counting_copy(void *context, void *dst, const void *src, int64_t size)
{
    copies++;
    return counted->copy(context, dst, src, size);
}

/* A run's inputs lie in its plan as they lie in the image, so it takes them by one copy, and its result by another. */
static void test_inputs_come_at_once(void **state)
{
    (void)state;
    struct config c = three_micro_steps();
    struct tiny t;
    struct stepper s;
    struct step_result result;
    tiny_open(&t, &c, training);
    counted = t.engine.backend;
    struct backend counting = *counted;
    counting.copy = counting_copy;
    t.engine.backend = &counting;
    stepper_init(&s, &t.engine, &t.arena);
    feed(&s, 0);
    copies = 0;
    hand_ok(stepper_start(&s, NULL));
    hand_ok(stepper_wait(&s, &result));
    assert_int_equal(copies, 2 * (MICRO_STEPS + 1));
    stepper_close(&s);
    t.engine.backend = counted;
    tiny_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ahead_is_the_same),
        cmocka_unit_test(test_loss_is_the_mean),
        cmocka_unit_test(test_inputs_stay),
        cmocka_unit_test(test_inputs_come_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
