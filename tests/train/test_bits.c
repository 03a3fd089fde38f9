/* Bitwise reproducibility of training: runs with the same number of threads give the same bits.
 * With the program's own kernels the number of threads does not matter either, because their
 * reductions are split by shape only. The matmul library splits by threads, so its results for
 * different numbers of threads are close but not equal (docs/MEASURING.md).
 * test: release; it compares bits of whole steps, which test_train.sh runs with sanitizers */
#include "../support/small.h"
#include "../support/tiny.h"
#include "base/threads.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 10 };

struct result {
    double loss[STEPS];
    float *weights; /* after the last step; freed by the caller */
    int64_t elements;
};

/* Matmuls of 256 rows: enough work for every thread, and long sums that are split. */
static struct config wide_config(void)
{
    struct config c = small_config();
    c.model.n_embd = 64;
    c.model.block_size = 64;
    c.model.dropout = 0.2;
    c.model.bias = true;
    return c;
}

static struct result learn(struct config c, int64_t threads)
{
    struct arena a = {0};
    struct learner l;
    struct result r;
    c.plan.threads = threads;
    threads_set(threads);
    small_learner(&l, &c, 0, &a);
    for (int i = 0; i < STEPS; i++) {
        struct learner_step s;
        assert_int_equal(tiny_learn(&l, i, &s), ST_OK);
        r.loss[i] = s.result.loss;
    }
    r.elements = l.engine.program.model.elements;
    r.weights = malloc((size_t)r.elements * sizeof(float));
    memcpy(r.weights, small_weights(&l), (size_t)r.elements * sizeof(float));
    learner_close(&l);
    arena_release(&a);
    return r;
}

static bool same(const struct result *x, const struct result *y)
{
    return !memcmp(x->loss, y->loss, sizeof x->loss) &&
           !memcmp(x->weights, y->weights, (size_t)x->elements * sizeof(float));
}

static double loss_distance(const struct result *x, const struct result *y)
{
    double most = 0;
    for (int i = 0; i < STEPS; i++) most = fmax(most, fabs(x->loss[i] - y->loss[i]));
    return most;
}

/* Relative difference, by norm. */
static double weights_distance(const struct result *x, const struct result *y)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < x->elements; i++) {
        double d = (double)x->weights[i] - (double)y->weights[i];
        difference += d * d;
        norm += (double)x->weights[i] * (double)x->weights[i];
    }
    return sqrt(difference / norm);
}

enum { MOST_THREADS = 3 };

static void assert_repeats(const struct config *c)
{
    for (int64_t threads = 1; threads <= MOST_THREADS; threads++) {
        struct result first = learn(*c, threads), again = learn(*c, threads);
        if (!same(&first, &again)) fail_msg("%d threads do not repeat", (int)threads);
        free(first.weights);
        free(again.weights);
    }
}

/* Checks that the distance of losses and of weights (by norm) from the results of one thread is
 * below `losses` and `weights`; losses 0: the same bits. */
static void assert_near_one_thread(const struct config *c, double losses, double weights)
{
    struct result one = learn(*c, 1);
    for (int64_t threads = 2; threads <= MOST_THREADS; threads++) {
        struct result more = learn(*c, threads);
        double of_losses = loss_distance(&one, &more), of_weights = weights_distance(&one, &more);
        bool near = losses > 0 ? of_losses < losses && of_weights < weights : same(&one, &more);
        if (!near)
            fail_msg("%d threads differ from one: losses by %g, weights by %g", (int)threads,
                     of_losses, of_weights);
        free(more.weights);
    }
    free(one.weights);
}

/* With the default matmul kernels of this machine. */
static void test_same_threads_repeat_bits(void **state)
{
    (void)state;
    struct config c = wide_config();
    for (int flash = 0; flash < 2; flash++) {
        c.plan.flash = flash;
        assert_repeats(&c);
    }
}

static void test_other_thread_counts_are_close(void **state)
{
    (void)state;
    struct config c = wide_config();
    assert_near_one_thread(&c, 1e-5, 1e-4);
}

static void test_own_kernels_ignore_thread_count(void **state)
{
    (void)state;
    struct config c = wide_config();
    c.plan.isa = ISA_PLAIN; /* without the library */
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++)
        for (int flash = 0; flash < 2; flash++) {
            c.plan.fusion = (enum fusion)fusion;
            c.plan.flash = flash;
            assert_near_one_thread(&c, 0, 0);
        }
    assert_int_equal(isa_limit(ISA_AUTO), ST_OK);
}

/* The same in bfloat16, where sums in another order round differently. */
static void test_bfloat16(void **state)
{
    (void)state;
    struct config c = wide_config();
    c.plan.dtype = PRECISION_BFLOAT16;
    for (int flash = 0; flash < 2; flash++) {
        c.plan.flash = flash;
        assert_repeats(&c);
        assert_near_one_thread(&c, 2e-2, 2e-2);
    }
    c.plan.flash = false;
    c.plan.isa = ISA_PLAIN;
    assert_near_one_thread(&c, 0, 0);
    assert_int_equal(isa_limit(ISA_AUTO), ST_OK);
}

static int make(void **state)
{
    (void)state;
    small_make();
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    small_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_threads_repeat_bits),
        cmocka_unit_test(test_other_thread_counts_are_close),
        cmocka_unit_test(test_own_kernels_ignore_thread_count),
        cmocka_unit_test(test_bfloat16),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
