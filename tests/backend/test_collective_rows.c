/* The kernel rows of collectives on the CPU and, if there is one, on a GPU that the ranks share.
 * Several collectives are in flight and are awaited in another order. The work before them writes
 * their data, and the work after them overwrites it. */
#include "../support/cases.h"
#include "backend/backend.h"
#include "backend/communicator.h"
#include "backend/kernel.h"
#include "base/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 5, LONGEST = 5003, ROUNDS = 2 };
enum { SUMMED, SHARDED, GIVEN, MEMORIES }; /* ALL_REDUCE; REDUCE_SCATTER, ALL_GATHER; BROADCAST */

static const struct {
    enum op op;
    int memory;
} program[] = {{OP_ALL_REDUCE, SUMMED},  {OP_REDUCE_SCATTER, SHARDED},
               {OP_BROADCAST, GIVEN},    {OP_AWAIT, SHARDED},
               {OP_ALL_GATHER, SHARDED}, {OP_AWAIT, GIVEN},
               {OP_AWAIT, SHARDED},      {OP_AWAIT, SUMMED}};

struct rank {
    const struct backend *backend;
    const struct target *target;
    struct communicator *communicator;
    int rank, ranks;
    int64_t n;
    pthread_t thread;
    void *context;
    float *memory[MEMORIES], *kept[MEMORIES];
    union attr attr;
    const struct kernel *kernel[COUNT_OF(program)];
    struct kernel_call call[COUNT_OF(program)];
    float result[MEMORIES][LONGEST];
    enum status st;
    char message[1024];
};

static struct rank rank[MOST];

static float value_of(int r, int64_t i, int memory, int round)
{
    return (float)((r + 1) * 1000 + i % 97 + 7 * round) * (memory ? 0.25f : 1.0f / 3);
}

static enum status prepare(struct rank *r)
{
    const struct backend *b = r->backend;
    for (int m = 0; m < MEMORIES; m++) {
        TRY(b->memory.alloc(r->context, r->n * 4, (void **)&r->memory[m]));
        TRY(b->memory.alloc(r->context, r->n * 4, (void **)&r->kept[m]));
    }
    r->attr.group.ranks = r->ranks;
    for (int i = 0; i < COUNT_OF(program); i++) {
        struct kernel_call *c = &r->call[i];
        *c = (struct kernel_call){.attr = &r->attr, .n_in = 1, .n_out = 1, .target = r->target};
        c->in_type[0] = c->out_type[0] = (struct type){DT_F32, 1, {r->n}};
        r->kernel[i] = b->kernels.find((int)program[i].op, c, 0);
        if (!r->kernel[i]) return (fail)(ST_UNSUPPORTED, "no row %d", i);
        c->in[0] = c->out[0] = r->memory[program[i].memory];
        c->context = r->context;
        c->communicator = r->communicator;
        if (r->kernel[i]->prepare) TRY(r->kernel[i]->prepare(r->kernel[i], c));
    }
    return ST_OK;
}

/* Does not wait for the device: results are copied to `kept` in stream order. */
static enum status run_round(struct rank *r, int round)
{
    const struct backend *b = r->backend;
    static _Thread_local float x[LONGEST];
    for (int m = 0; m < MEMORIES; m++) {
        for (int64_t i = 0; i < r->n; i++) x[i] = value_of(r->rank, i, m, round);
        TRY(b->memory.upload(r->context, r->memory[m], x, r->n * 4));
    }
    for (int i = 0; i < COUNT_OF(program); i++) TRY(r->kernel[i]->run(&r->call[i]));
    for (int m = 0; m < MEMORIES; m++) {
        TRY(b->memory.copy(r->context, r->kept[m], r->memory[m], r->n * 4));
        TRY(b->memory.fill(r->context, r->memory[m], 0xff, r->n * 4));
    }
    return ST_OK;
}

static enum status work(struct rank *r)
{
    const struct backend *b = r->backend;
    TRY(b->open(0, &r->context));
    TRY(prepare(r));
    for (int round = 0; round < ROUNDS; round++) TRY(run_round(r, round));
    for (int m = 0; m < MEMORIES; m++)
        TRY(b->memory.download(r->context, r->result[m], r->kept[m], r->n * 4));
    return communicator_tell(r->communicator, &r->attr, sizeof r->attr); /* waits for all ranks */
}

static void *start(void *user)
{
    struct rank *r = user;
    const struct backend *b = r->backend;
    r->st = work(r);
    if (r->st != ST_OK) {
        snprintf(r->message, sizeof r->message, "%s", fail_message());
        communicator_fail(r->communicator, ST_DEVICE);
    }
    for (int i = 0; i < COUNT_OF(program); i++)
        if (r->kernel[i] && r->kernel[i]->release) r->kernel[i]->release(&r->call[i]);
    for (int m = 0; m < MEMORIES; m++) {
        if (r->memory[m]) b->memory.free(r->context, r->memory[m]);
        if (r->kept[m]) b->memory.free(r->context, r->kept[m]);
    }
    if (r->context) b->close(r->context);
    communicator_close(r->communicator);
    return NULL;
}

static void run_ranks(const struct backend *b, const struct target *t, int ranks, int64_t n)
{
    struct communicator *c[MOST];
    communicator_open_threads(c, ranks, 60);
    memset(rank, 0, sizeof rank);
    for (int r = 0; r < ranks; r++) {
        rank[r] = (struct rank){.backend = b, .target = t, .communicator = c[r]};
        rank[r].rank = r, rank[r].ranks = ranks, rank[r].n = n;
        assert_true(threads_start(&rank[r].thread, start, &rank[r]));
    }
    for (int r = 0; r < ranks; r++) pthread_join(rank[r].thread, NULL);
}

static void test_rows(const char *backend)
{
    static const int64_t sizes[] = {1, 17, 1023, LONGEST};
    const struct backend *b = backend_find(backend);
    struct target t;
    if (!b || b->devices.count() == 0) SKIP("no device of the backend %s", backend);
    assert_int_equal(backend_target(b, 0, &t), ST_OK);
    for (int ranks = 2; ranks <= MOST; ranks++)
        for (int s = 0; s < COUNT_OF(sizes); s++) {
            run_ranks(b, &t, ranks, sizes[s]);
            for (int r = 0; r < ranks; r++) {
                assert_string_equal(rank[r].message, "");
                for (int m = 0; m < MEMORIES; m++)
                    for (int64_t i = 0; i < sizes[s]; i++) {
                        float sum = value_of(0, i, m, ROUNDS - 1);
                        for (int k = 1; k < ranks && m != GIVEN; k++)
                            sum += value_of(k, i, m, ROUNDS - 1);
                        assert_true(rank[r].result[m][i] == sum);
                    }
            }
        }
    print_message("%s: %d ranks\n", backend, MOST);
}

static void test_on_the_cpu(void **)
{
    test_rows("cpu");
}

static void test_on_one_gpu(void **)
{
    test_rows("cuda");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_the_cpu),
        cmocka_unit_test(test_on_one_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
