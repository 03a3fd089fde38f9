/* Ranks in threads follow every order in sequence; a failure of one rank reaches rank 0 with its
 * message. */
#include "engine/crew.h"

#include "../support/hand.h"
#include "backend/communicator.h"
#include "base/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 3, ADD = 0, GATHER = 1, BREAK = 2, HANG = 3, MISCOUNT = 4 };

static int opened, closed; /* read without a lock, after all threads have ended */

struct member {
    struct communicator *communicator;
    int64_t sum;
};

static enum status open_member(void **ret, const void *job, struct communicator *c)
{
    struct member *m = HEAP_NEW(struct member, 1);
    *ret = m;
    *m = (struct member){.communicator = c};
    __atomic_add_fetch(&opened, 1, __ATOMIC_RELAXED);
    const int *fails = job;
    if (communicator_rank(c) == *fails) return (fail)(ST_MEMORY, "there is no memory");
    return ST_OK;
}

static enum status obey(void *state, const struct crew_order *o)
{
    struct member *m = state;
    int64_t all[RANKS];
    if (o->what == BREAK && communicator_rank(m->communicator) == o->iter)
        return (fail)(ST_DEVICE, "it broke");
    if (o->what == MISCOUNT && communicator_rank(m->communicator) == o->iter)
        return (fail)(ST_NUMERIC, "it is not a number");
    while (o->what == HANG && communicator_rank(m->communicator) == o->iter) sleep(1);
    if (o->what == ADD) m->sum += o->iter * o->first;
    if (o->what == GATHER) return communicator_gather(m->communicator, &m->sum, sizeof m->sum, all);
    return ST_OK;
}

static void close_member(void *state)
{
    __atomic_add_fetch(&closed, 1, __ATOMIC_RELAXED);
    free(state);
}

static const struct crew_work work = {open_member, obey, close_member};

static enum status gather(struct crew *crew, int64_t *ret_all)
{
    int64_t own = 7;
    TRY(crew_order(crew->communicator, GATHER, 0, 0));
    return communicator_gather(crew->communicator, &own, sizeof own, ret_all);
}

static void open_crew(struct crew *crew, const int *fails)
{
    opened = closed = 0;
    hand_ok(crew_open(crew, RANKS, 30, &work, fails));
}

static void test_orders_are_obeyed(void **state)
{
    (void)state;
    struct crew crew;
    int64_t all[RANKS];
    int none = -1;
    open_crew(&crew, &none);
    for (int i = 1; i <= 4; i++) hand_ok(crew_order(crew.communicator, ADD, i, 10));
    hand_ok(gather(&crew, all));
    assert_true(all[0] == 7 && all[1] == 100 && all[2] == 100);
    crew_close(&crew);
    assert_true(opened == RANKS - 1 && closed == RANKS - 1 && !crew.communicator);
    crew_close(&crew); /* nothing is left to close */
}

static void test_a_rank_that_fails(void **state)
{
    (void)state;
    struct crew crew;
    int64_t all[RANKS];
    int second = 2, none = -1;
    open_crew(&crew, &second);
    assert_int_equal(gather(&crew, all), ST_DEVICE);
    assert_string_equal(fail_message(), "rank 2: there is no memory");
    crew_close(&crew);
    assert_string_equal(fail_message(), "rank 2: there is no memory"); /* crew_close keeps it */
    assert_true(opened == RANKS - 1 && closed == RANKS - 1);

    open_crew(&crew, &none);
    hand_ok(crew_order(crew.communicator, BREAK, 1, 0));
    assert_int_equal(gather(&crew, all), ST_DEVICE);
    assert_string_equal(fail_message(), "rank 1: it broke");
    crew_close(&crew);
    assert_true(closed == RANKS - 1);
}

/* ST_NUMERIC keeps its meaning on all ranks; it does not become a device failure. */
static void test_the_status_of_another_rank(void **state)
{
    (void)state;
    struct crew crew;
    int64_t all[RANKS];
    int none = -1;
    open_crew(&crew, &none);
    hand_ok(crew_order(crew.communicator, MISCOUNT, 2, 0));
    assert_int_equal(gather(&crew, all), ST_NUMERIC);
    assert_string_equal(fail_message(), "rank 2: it is not a number");
    crew_close(&crew);
}

/* This test runs last, because its thread stays until the process ends. */
static void test_a_rank_that_hangs(void **state)
{
    (void)state;
    struct crew crew;
    int64_t all[RANKS];
    int none = -1;
    opened = closed = 0;
    hand_ok(crew_open(&crew, RANKS, 1, &work, &none));
    hand_ok(crew_order(crew.communicator, HANG, 1, 0));
    assert_int_equal(gather(&crew, all), ST_DEVICE);
    assert_string_equal(fail_message(), "rank 1 did not answer for 1 s (rank_timeout)");
    crew_close(&crew);
    assert_string_equal(fail_message(), "rank 1 did not answer for 1 s (rank_timeout)");
    assert_int_equal(closed, RANKS - 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_are_obeyed),
        cmocka_unit_test(test_a_rank_that_fails),
        cmocka_unit_test(test_the_status_of_another_rank),
        cmocka_unit_test(test_a_rank_that_hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
