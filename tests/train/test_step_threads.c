/* Threads of a training step are created before it and are the same in each step, including
 * oneDNN's.
 * test: release; it counts threads, and sanitizers start their own */
#include "../support/small.h"
#include "../support/tiny.h"
#include "base/threads.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- counts every thread that is created ------------------------------------------------------ */

static volatile long started;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real) {
        void *symbol = dlsym(RTLD_NEXT, "pthread_create");
        memcpy(&real, &symbol, sizeof real);
    }
    __atomic_add_fetch(&started, 1, __ATOMIC_RELAXED);
    return real(thread, attr, start, arg);
}

/* Returns the number of threads; ret_names: their names. */
static int threads_alive(char ret_names[256])
{
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    *ret_names = '\0';
    for (struct dirent *d; (d = readdir(tasks));) {
        char path[300], name[32] = "\n";
        if (d->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", d->d_name);
        FILE *f = fopen(path, "re");
        if (f && !fgets(name, sizeof name, f)) *name = '\0';
        if (f) fclose(f);
        size_t used = strlen(ret_names);
        snprintf(ret_names + used, 256 - used, " %.*s", (int)strcspn(name, "\n"), name);
        n++;
    }
    closedir(tasks);
    return n;
}

/* ---------------------------------------------------------------------------------------------- */

enum { WARM = 3 };

static void run_steps(const struct config *c, int steps)
{
    struct arena a = {0};
    struct learner l;
    struct learner_step s;
    small_learner(&l, c, 0, &a);
    for (int64_t iter = 0; iter < WARM; iter++) assert_int_equal(tiny_learn(&l, iter, &s), ST_OK);
    long before = started;
    for (int64_t iter = WARM; iter < WARM + steps; iter++)
        assert_int_equal(tiny_learn(&l, iter, &s), ST_OK);
    if (started != before)
        fail_msg("%ld threads were started in %d steps (threads=%d, flash=%d, fusion %d, dtype %d)",
                 started - before, steps, (int)c->plan.threads, (int)c->plan.flash,
                 (int)c->plan.fusion, (int)c->plan.dtype);
    learner_close(&l);
    arena_release(&a);
}

/* 64 tokens of context and a batch of 4, so that matmuls are worth parallelizing. */
static struct config wide_config(int64_t threads)
{
    struct config c = small_config();
    c.model.n_embd = 64;
    c.model.block_size = 64;
    c.model.dropout = 0.2;
    c.plan.threads = threads;
    threads_set(threads);
    return c;
}

static void test_steps_create_no_threads(void **state)
{
    (void)state;
    for (int64_t threads = 1; threads <= 4; threads++) {
        struct config c = wide_config(threads);
        for (int flash = 0; flash < 2; flash++) {
            c.plan.flash = flash;
            run_steps(&c, threads == 2 ? 100 : 10);
        }
        assert_true(started >= threads - 1); /* the counter works */
        char names[256];
        int alive = threads_alive(names); /* the matmul library has no other threads */
        if (alive != threads) fail_msg("%d threads instead of %d:%s", alive, (int)threads, names);
    }
}

static void test_on_every_rung(void **state)
{
    (void)state;
    struct config c = wide_config(2);
    for (int fusion = FUSION_PRIMITIVE; fusion < FUSION_FULL; fusion++) {
        c.plan.fusion = (enum fusion)fusion;
        run_steps(&c, 10);
    }
}

static void test_in_bfloat16(void **state)
{
    (void)state;
    struct config c = wide_config(2);
    c.plan.dtype = PRECISION_BFLOAT16;
    for (int flash = 0; flash < 2; flash++) {
        c.plan.flash = flash;
        run_steps(&c, 100);
    }
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
        cmocka_unit_test(test_steps_create_no_threads),
        cmocka_unit_test(test_on_every_rung),
        cmocka_unit_test(test_in_bfloat16),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
