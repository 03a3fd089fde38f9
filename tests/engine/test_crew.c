/* The other ranks of this process: they obey every order in turn, and a failure of one reaches rank
 * 0 with its words. */
#include "engine/crew.h"

#include "../support/hand.h"
#include "backend/communicator.h"
#include "base/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 3, ADD = 0, GATHER = 1, BREAK = 2 };

static int opened, closed; /* under no lock: read when all have ended */

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
    assert_string_equal(fail_message(), "rank 2: there is no memory"); /* it is kept */
    assert_true(opened == RANKS - 1 && closed == RANKS - 1);

    open_crew(&crew, &none);
    hand_ok(crew_order(crew.communicator, BREAK, 1, 0));
    assert_int_equal(gather(&crew, all), ST_DEVICE);
    assert_string_equal(fail_message(), "rank 1: it broke");
    crew_close(&crew);
    assert_true(closed == RANKS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_are_obeyed),
        cmocka_unit_test(test_a_rank_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
