/* Published numbers: read from their file, next to rungs of the ladder. */
#include "bench/ladder.h"
#include "present/table_cells.h"
#include "view/ladder_view.h"
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
    assert_true(published_rate(&p.source[0], "flash") == 170000);
    assert_true(published_rate(&p.source[1], "float32, slow") == 1600);
    assert_true(published_rate(&p.source[1], "full fusion") == 0);
    const char *words = published_words(&p, true, &a);
    assert_non_null(strstr(words, "A100 by Karpathy's lecture"));
    assert_non_null(strstr(words, "; RTX 4060 Ti by "));
    arena_release(&a);
}

/* Next to another ladder the numbers are there all the same, in parentheses, and a sentence says
 * why. */
static void test_not_comparable(void **state)
{
    (void)state;
    struct arena a = {0};
    struct published p;
    struct config c;
    struct table_column column[2];
    config_init(&c);
    config_choose(&c, &(struct config_facts){0});
    c.model.kind = MODEL_GPT;
    c.model.n_layer = c.model.n_head = 12;
    c.model.n_embd = 768, c.model.block_size = 1024;
    assert_true(published_comparable(&c, true));
    assert_false(published_comparable(&c, false));
    c.model.block_size = 512;
    assert_false(published_comparable(&c, true));
    published_read(&p, &a);
    for (int comparable = 0; comparable < 2; comparable++) {
        published_columns(&p, comparable, column, &a);
        struct table t = table_new(column, 2, 1, &a);
        published_set(&p, comparable, "flash", &t, 0, 0, &a);
        assert_string_equal(column[0].id, "published_a100_tokens_per_s");
        assert_string_equal(table_at(&t, 0, 0)->text, comparable ? "170,000" : "(170,000)");
        assert_true(table_at(&t, 0, 1)->number == 15000);
        bool says = strstr(published_words(&p, comparable, &a), "in parentheses") != NULL;
        assert_true(says == !comparable);
    }
    arena_release(&a);
}

/* What padding costs and buys, from the rung and the one that ran before it. */
static void test_padding(void **state)
{
    (void)state;
    struct arena a = {0};
    struct ladder l = {.rungs = 3};
    l.rung[0] = (struct ladder_rung){.name = "flash",
                                     .differs = "--dtype=float32 --pad_vocab=0",
                                     .facts = {.flops = 9.9e8},
                                     .ms = {.n = 20, .median = 20, .std = 0.5}};
    l.rung[1] = (struct ladder_rung){.differs = "--flash=true", .reason = "no"};
    l.rung[2] = (struct ladder_rung){
        .differs = "--pad_vocab=64",
        .facts = {.flops = 1.0098e9},
        .ms = {.n = 20, .median = 16, .std = 0.25},
        .speed = {JUDGED_IN_TURNS, {VERDICT_FASTER, false, 20, 1.25, 1.2, 1.31}, NULL}};
    assert_string_equal(
        ladder_view_padding(&l, &a),
        "The padded vocabulary costs 2 % more FLOPs a step (990 MFLOP and "
        "1.01 GFLOP by the plans). A step takes 16 ± 0.25 ms with it and 20 ± 0.5 ms without: "
        "this rung is 1.25 times as fast as flash (1.20 to 1.31, in 20 turns).");
    l.rung[2].speed.verdict = (struct verdict){VERDICT_UNCERTAIN, false, 20, 1.05, 0.9, 1.2};
    assert_non_null(strstr(ladder_view_padding(&l, &a),
                           " without: this rung cannot be told apart in speed from flash (0.90 "));
    l.rungs = 2;
    assert_null(ladder_view_padding(&l, &a));
    arena_release(&a);
}

/* Settings of the rung `name` of a ladder; false: there is none. */
static bool find_rung(bool gpu, const char *name, struct config *ret, struct arena *a)
{
    static const char *const first[] = {"dtype=float32", "fusion=op", "flash=false", "pad_vocab=0",
                                        "replay=false"};
    struct config c;
    struct ladder_rung rung;
    config_init(&c);
    config_choose(&c, &(struct config_facts){0});
    for (int i = 0; i < COUNT_OF(first); i++) assert_int_equal(config_set(&c, first[i], a), ST_OK);
    *ret = c;
    if (gpu && !strcmp(name, "float32, slow")) return true;
    if (!gpu) assert_int_equal(config_set(&c, "fusion=primitive", a), ST_OK);
    for (int at = 0; ladder_next(&c, gpu, &at, &rung, a);) {
        if (gpu || strcmp(rung.name, "tfloat32") != 0) c = rung.config;
        if (strcmp(rung.name, name) != 0) continue;
        *ret = rung.config;
        return true;
    }
    return false;
}

static void differs(void *user, const char *key, const char *gpu, const char *cpu)
{
    fail_msg("%s: %s=%s on a GPU, %s on a CPU", (const char *)user, key, gpu, cpu);
}

/* Each published number is on both ladders, at a rung of the same settings. Otherwise a renamed
 * rung would lose its numbers silently, and a moved one would show those of another. */
static void test_every_rung_is_on_both_ladders(void **state)
{
    (void)state;
    struct arena a = {0};
    struct published p;
    struct config gpu, cpu;
    published_read(&p, &a);
    for (int i = 0; i < p.sources; i++) {
        void *at = json_object_iter((json_t *)p.source[i].tokens_per_s);
        for (; at; at = json_object_iter_next((json_t *)p.source[i].tokens_per_s, at)) {
            const char *name = json_object_iter_key(at);
            if (!find_rung(true, name, &gpu, &a) || !find_rung(false, name, &cpu, &a))
                fail_msg("%s: no rung %s", p.source[i].id, name);
            config_diff(&gpu, &cpu, differs, (void *)name);
        }
    }
    assert_false(find_rung(true, "another", &gpu, &a) || find_rung(false, "another", &cpu, &a));
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_comparable),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_every_rung_is_on_both_ladders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
