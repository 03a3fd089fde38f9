/* The table of models: what each row promises, and what it refuses. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "config/fields.h"
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Keys that do not go together, of those that a model reads. */
static void test_checks(void **state)
{
    (void)state;
    static const struct {
        const char *set[3];
        enum status st;
        const char *names[2]; /* both stand in the sentence */
    } cases[] = {
        {{"n_head=5", "n_embd=96"}, ST_USAGE, {"n_head = 5", "n_embd = 96"}},
        {{"n_kv_head=5"}, ST_USAGE, {"n_head = 12 is not divisible by n_kv_head = 5"}},
        {{"n_kv_head=24"}, ST_USAGE, {"n_head = 12", "n_kv_head = 24"}},
        {{"n_kv_head=1"}, ST_OK, {0}},
        {{"n_kv_head=12"}, ST_OK, {0}},
        {{"model=cs336", "n_kv_head=5"},
         ST_USAGE,
         {"n_head = 12 is not divisible by n_kv_head = 5"}},
        {{"model=cs336", "n_head=256"}, ST_USAGE, {"n_embd = 768 and n_head = 256", "heads of 3"}},
        {{"model=cs336", "n_head=384"}, ST_OK, {0}},
        {{"model=attention_block", "n_kv_head=5"}, ST_OK, {0}}, /* it reads no such key */
        {{"warmup_iters=20", "lr_decay_iters=10"}, ST_USAGE, {"warmup_iters"}}, /* config_check's */
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct arena a = {0};
        struct config c;
        config_init(&c);
        for (int k = 0; k < 3; k++)
            if (cases[i].set[k]) hand_ok(config_set(&c, cases[i].set[k], &a));
        assert_int_equal(model_check(&c), cases[i].st);
        for (int k = 0; k < 2; k++)
            if (cases[i].names[k]) assert_non_null(strstr(fail_message(), cases[i].names[k]));
        arena_release(&a);
    }
}

static struct config config_of(int kind)
{
    struct config c;
    config_init(&c);
    c.model.kind = (enum model_kind)kind;
    return c;
}

/* Each key is one of the group `model`, once; each parameter has a name of its own. */
static void test_rows(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct arena a = {0};
        struct model m;
        struct config c = config_of(kind);
        const struct model_def *def = model_def(&c.model);
        assert_true(strlen(def->what) > 5 && strlen(def->unit) > 3);
        for (const char *const *key = def->keys; *key; key++) {
            const struct field *f = field_find(*key, (int64_t)strlen(*key));
            assert_non_null(f);
            assert_true(!strncmp(f->member, "model.", 6));
            assert_true(model_reads(&c.model, *key));
            for (const char *const *other = key + 1; *other; other++)
                assert_string_not_equal(*key, *other);
        }
        assert_false(model_reads(&c.model, "batch_size"));
        hand_ok(model_check(&c));
        model_init(&m, &c.model, TINY_VOCAB, 1, &a);
        for (int i = 0; i < m.parameters; i++)
            for (int k = i + 1; k < m.parameters; k++)
                assert_string_not_equal(m.parameter[i].name, m.parameter[k].name);
        arena_release(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
