/* Published numbers: read from their file, next to rungs of the ladder. */
#include "bench/ladder.h"
#include "view/published.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <string.h>

static void test_numbers(void **state)
{
    (void)state;
    struct arena a = {0};
    struct published p;
    published_read(&p, &a);
    assert_int_equal(p.sources, 2);
    assert_string_equal(p.source[0].id, "a100");
    assert_true(published_tokens(&p.source[0], "flash") == 170000);
    assert_true(published_tokens(&p.source[1], "float32, slow") == 1600);
    assert_true(published_tokens(&p.source[1], "full fusion") == 0);
    const char *words = published_words(&p, &a);
    assert_non_null(strstr(words, "A100 by Karpathy's lecture"));
    assert_non_null(strstr(words, "; RTX 4060 Ti by "));
    arena_release(&a);
}

/* True for the first rung, and for those that change one key of it. */
static bool is_rung(const char *name, struct arena *a)
{
    static const char *const first[] = {"dtype=float32", "fusion=op", "flash=false", "pad_vocab=0",
                                        "replay=false"};
    struct config c;
    struct ladder_rung rung;
    int at = 0;
    if (!strcmp(name, "float32, slow")) return true;
    config_init(&c);
    for (int i = 0; i < COUNT_OF(first); i++) assert_int_equal(config_set(&c, first[i], a), ST_OK);
    while (ladder_next(&c, true, &at, &rung, a))
        if (!strcmp(rung.name, name)) return true;
    return false;
}

/* Otherwise a renamed rung would lose its published numbers silently. */
static void test_every_rung_is_on_the_ladder(void **state)
{
    (void)state;
    struct arena a = {0};
    struct published p;
    published_read(&p, &a);
    for (int i = 0; i < p.sources; i++) {
        void *at = json_object_iter((json_t *)p.source[i].tokens_per_s);
        for (; at; at = json_object_iter_next((json_t *)p.source[i].tokens_per_s, at))
            if (!is_rung(json_object_iter_key(at), &a))
                fail_msg("%s: no rung %s", p.source[i].id, json_object_iter_key(at));
    }
    assert_false(is_rung("another", &a));
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_every_rung_is_on_the_ladder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
