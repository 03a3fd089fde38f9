/* The table of models: the contents of each row and its checks. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "config/fields.h"
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Invalid combinations of keys. */
static void test_checks(void **state)
{
    (void)state;
    static const struct {
        const char *set[3];
        enum status st;
        const char *names[2]; /* both appear in the message */
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
        {{"model=attention_block", "n_kv_head=5"}, ST_OK, {0}}, /* it does not read that key */
        {{"model=attention_block", "attention_mask=causal", "attention_scale=none"}, ST_OK, {0}},
        {{"attention_scale=none"}, ST_USAGE, {"attention_scale are keys", "model = gpt"}},
        {{"model=cs336", "attention_mask=causal"}, ST_USAGE, {"attention_mask and", "= cs336"}},
        {{"attention_scale=auto", "attention_mask=none"}, ST_OK, {0}},
        /* checked by config_check */
        {{"warmup_iters=20", "lr_decay_iters=10"}, ST_USAGE, {"warmup_iters"}},
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

/* Each key belongs to the group `model` and appears once; parameter names are unique. */
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
