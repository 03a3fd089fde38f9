/* Every rung of the ladder bpe gives the ids of the first one, on hostile texts too. */
#include "lab/bpe/bpe.h"

#include "../support/slow_bpe.h"
#include "text/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 20000 };

static void run_on(const char *text, int64_t bytes, struct bpe_run *ret)
{
    struct arena a = {};
    struct tokenizer t;
    struct bpe_options o = {
        .tokenizer = &t, .text = text, .bytes = bytes, .samples = 2, .limit_ms = 50};
    assert_int_equal(tokenizer_open(&t, "tests/tokenizer", &a), ST_OK);
    assert_int_equal(bpe_run(&o, ret, &a), ST_OK);
    arena_release(&a);
}

static void test_rungs_agree(void **state)
{
    (void)state;
    static char text[MOST + STREAM_PADDING];
    uint64_t seed = 13;
    int64_t bytes = 0;
    struct bpe_run r;
    while (bytes < MOST - 1000) bytes += slow_random_text(&seed, 900, text + bytes);
    memset(text + bytes, 'a', 500); /* longer than simple merges take */
    bytes += 500;
    run_on(text, bytes, &r);
    assert_int_equal(r.wrong, 0);
    assert_true(r.pieces > 1000 && r.ids >= r.pieces);
    for (int i = 0; i < BPE_RUNGS; i++) {
        assert_non_null(r.result[i].rung->name);
        assert_true(r.result[i].rate > 0);
        assert_true(r.result[i].time.taken > 0);
    }
    assert_null(bpe_rungs[BPE_RUNGS].name);
}

static void test_known_ids(void **state)
{
    (void)state;
    static char text[100 + STREAM_PADDING] = "the dog don't";
    struct bpe_run r;
    run_on(text, (int64_t)strlen(text), &r);
    assert_int_equal(r.pieces, 4); /* the| dog| don|'t */
    assert_int_equal(r.ids, 6);    /* the| dog| do,n|',t */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rungs_agree),
        cmocka_unit_test(test_known_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
