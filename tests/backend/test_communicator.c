/* Collectives of ranks that are threads: their results are compared with sums in double precision.
 * A rank that fails or does not arrive ends the calls of all ranks. */
#include "backend/communicator.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/threads.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 5, LONGEST = 3001 };

struct rank {
    struct communicator *communicator;
    int rank, ranks;
    int64_t n;
    pthread_t thread;
    float x[LONGEST], y[LONGEST], z[LONGEST];
    int64_t all[MOST], told;
    enum status st;
    char message[1024];
};

static struct rank rank[MOST];

static float value_of(int r, int64_t i, int which)
{
    return (float)((r + 1) * 1000 + i % 97) * (which ? 0.25f : 1.0f / 3);
}

static void *collect(void *user)
{
    struct rank *r = user;
    struct communicator *c = r->communicator;
    int64_t own = 100 + r->rank;
    for (int64_t i = 0; i < r->n; i++) {
        r->x[i] = value_of(r->rank, i, 0);
        r->y[i] = value_of(r->rank, i, 1);
        r->z[i] = r->x[i];
    }
    usleep((unsigned)(r->rank * 7919 % 1000));
    /* two collectives at once, awaited in reverse order */
    r->st = communicator_start(c, COLLECTIVE_ALL_REDUCE, r->x, r->n);
    if (r->st == ST_OK) r->st = communicator_start(c, COLLECTIVE_REDUCE_SCATTER, r->y, r->n);
    if (r->st == ST_OK) r->st = communicator_wait(c, r->y);
    if (r->st == ST_OK) r->st = communicator_wait(c, r->x);
    if (r->st == ST_OK) r->st = communicator_start(c, COLLECTIVE_ALL_GATHER, r->y, r->n);
    if (r->st == ST_OK) r->st = communicator_wait(c, r->y);
    if (r->st == ST_OK) r->st = communicator_broadcast(c, r->z, r->n);
    if (r->st == ST_OK) r->st = communicator_gather(c, &own, sizeof own, r->all);
    r->told = r->rank == 0 ? 42 : 0;
    if (r->st == ST_OK) r->st = communicator_tell(c, &r->told, sizeof r->told);
    communicator_close(c);
    return NULL;
}

static void run_ranks(int ranks, int64_t n, int64_t timeout_s, void *(*work)(void *))
{
    struct communicator *c[MOST];
    communicator_open_threads(c, ranks, timeout_s);
    memset(rank, 0, sizeof rank);
    for (int r = 0; r < ranks; r++) {
        rank[r].communicator = c[r];
        rank[r].rank = r;
        rank[r].ranks = ranks;
        rank[r].n = n;
        assert_true(threads_start(&rank[r].thread, work, &rank[r]));
    }
    for (int r = 0; r < ranks; r++) pthread_join(rank[r].thread, NULL);
}

static void test_collectives(void **)
{
    static const int64_t sizes[] = {1, 15, 16, 17, 1024, 1025, LONGEST};
    for (int ranks = 1; ranks <= MOST; ranks++)
        for (int s = 0; s < COUNT_OF(sizes); s++) {
            run_ranks(ranks, sizes[s], 20, collect);
            for (int r = 0; r < ranks; r++) {
                assert_int_equal(rank[r].st, ST_OK);
                assert_int_equal(rank[r].told, 42);
                for (int k = 0; k < ranks; k++) assert_int_equal(rank[r].all[k], 100 + k);
                for (int64_t i = 0; i < sizes[s]; i++) {
                    double x = 0, y = 0;
                    for (int k = 0; k < ranks; k++) {
                        x += (double)value_of(k, i, 0);
                        y += (double)value_of(k, i, 1);
                    }
                    assert_true(fabs((double)rank[r].x[i] - x) <= 1e-6 * x);
                    assert_true(fabs((double)rank[r].y[i] - y) <= 1e-6 * y);
                    assert_true(rank[r].z[i] == value_of(0, i, 0));
                }
                assert_memory_equal(rank[r].x, rank[0].x, sizeof rank[0].x);
            }
        }
}

static void keep_message(struct rank *r)
{
    snprintf(r->message, sizeof r->message, "%s", fail_message());
}

/* Rank 2 fails while the others wait for it. */
static void *fail_one(void *user)
{
    struct rank *r = user;
    if (r->rank == 2) {
        usleep(20000);
        (void)!(fail)(ST_IO, "a file is not there");
        communicator_fail(r->communicator, ST_DEVICE);
    } else {
        r->st = communicator_start(r->communicator, COLLECTIVE_ALL_REDUCE, r->x, 64);
        if (r->st == ST_OK) r->st = communicator_wait(r->communicator, r->x);
    }
    if (r->st == ST_OK) r->st = communicator_gather(r->communicator, &r->rank, 4, r->y);
    keep_message(r);
    communicator_close(r->communicator);
    return NULL;
}

static void test_failure_of_one_ends_all(void **)
{
    run_ranks(4, 64, 20, fail_one);
    for (int r = 0; r < 4; r++) {
        assert_int_equal(rank[r].st, ST_DEVICE);
        assert_string_equal(rank[r].message, "rank 2: a file is not there");
    }
}

/* Rank 1 arrives after the timeout. */
static void *stay_away(void *user)
{
    struct rank *r = user;
    if (r->rank == 1) usleep(1500000);
    r->st = communicator_gather(r->communicator, &r->rank, 4, r->y);
    keep_message(r);
    communicator_close(r->communicator);
    return NULL;
}

static void test_timeout_names_the_rank(void **)
{
    int64_t start_ns = clock_ns();
    run_ranks(3, 1, 1, stay_away);
    assert_true(clock_ms(start_ns, clock_ns()) < 10000);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(rank[r].st, ST_DEVICE);
        assert_string_equal(rank[r].message, "rank 1 did not answer for 1 s (rank_timeout)");
    }
}

/* Rank 0 waits for longer than the timeout before it gives an order. */
static void *wait_for_order(void *user)
{
    struct rank *r = user;
    r->told = 1;
    if (r->rank == 0) usleep(1500000);
    r->st = communicator_tell(r->communicator, &r->told, sizeof r->told);
    communicator_close(r->communicator);
    return NULL;
}

static void test_orders_have_no_timeout(void **)
{
    run_ranks(3, 1, 1, wait_for_order);
    for (int r = 0; r < 3; r++) assert_int_equal(rank[r].st, ST_OK);
}

/* The ranks start different collectives: all of them fail, and none waits. */
static void *disagree(void *user)
{
    struct rank *r = user;
    enum collective what = r->rank ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_BROADCAST;
    r->st = communicator_start(r->communicator, what, r->x, 32);
    if (r->st == ST_OK) r->st = communicator_wait(r->communicator, r->x);
    communicator_close(r->communicator);
    return NULL;
}

static void test_different_collectives(void **)
{
    run_ranks(3, 1, 20, disagree);
    for (int r = 0; r < 3; r++) assert_int_equal(rank[r].st, ST_DEVICE);
}

/* Shards cover each element once, and begin at multiples of 16. */
static void test_shards(void **)
{
    for (int64_t n = 0; n < 200; n++)
        for (int ranks = 1; ranks < 20; ranks++) {
            int64_t at = 0;
            for (int r = 0; r < ranks; r++) {
                struct group_shard s = group_shard(n, ranks, r);
                assert_int_equal(s.first, at);
                assert_true(s.end >= s.first && (s.first % 16 == 0 || s.first == n));
                at = s.end;
            }
            assert_int_equal(at, n);
        }
}

static void test_one_rank_has_no_communicator(void **)
{
    float x[4] = {1, 2, 3, 4};
    assert_int_equal(communicator_ranks(NULL), 1);
    assert_int_equal(communicator_rank(NULL), 0);
    assert_int_equal(communicator_start(NULL, COLLECTIVE_ALL_REDUCE, x, 4), ST_OK);
    assert_int_equal(communicator_wait(NULL, x), ST_OK);
    assert_true(x[3] == 4);
}

enum { RECORDS = 3 };
static struct collective_record record[MOST][RECORDS];

/* Rank 1 arrives late. Messages are not recorded, and records beyond the capacity are dropped. */
static void *collect_recorded(void *user)
{
    struct rank *r = user;
    struct communicator *c = r->communicator;
    communicator_record(c, record[r->rank], RECORDS);
    if (r->rank == 1) usleep(20000);
    for (int i = 0; i < RECORDS + 1 && r->st == ST_OK; i++) {
        r->st = communicator_start(c, i ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_BROADCAST, r->x, r->n);
        if (r->st == ST_OK) r->st = communicator_wait(c, r->x);
        if (r->st == ST_OK) r->st = communicator_tell(c, &r->told, sizeof r->told);
    }
    communicator_record(c, NULL, 0);
    if (r->st == ST_OK) r->st = communicator_broadcast(c, r->x, r->n);
    communicator_close(c);
    return NULL;
}

static void test_records(void **state)
{
    (void)state;
    memset(record, 0, sizeof record);
    run_ranks(2, 100, 30, collect_recorded);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(rank[k].st, ST_OK);
        for (int i = 0; i < RECORDS; i++) {
            const struct collective_record *x = &record[k][i], *other = &record[1 - k][i];
            assert_true(x->what == (i ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_BROADCAST));
            assert_true(x->n == 100 && x->posted_ns > 0 && x->posted_ns <= x->begun_ns);
            assert_true(x->begun_ns <= x->met_ns && x->met_ns <= x->done_ns);
            assert_true(x->met_ns == other->met_ns); /* the same moment for all ranks */
            if (i) assert_true(x->posted_ns >= x[-1].done_ns);
        }
    }
    assert_true(record[0][0].met_ns - record[0][0].begun_ns > 15000000);
    assert_true(record[0][0].met_ns >= record[1][0].begun_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_failure_of_one_ends_all),
        cmocka_unit_test(test_timeout_names_the_rank),
        cmocka_unit_test(test_orders_have_no_timeout),
        cmocka_unit_test(test_different_collectives),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_one_rank_has_no_communicator),
        cmocka_unit_test(test_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
