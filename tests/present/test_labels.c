#include "present/labels.h"
#include "present/markup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int count_of(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text++) n++;
    return n;
}

/* The labels of coinciding points are all placed, without overlapping each other, a point or a
 * level. */
static void test_a_crowd(void **state)
{
    (void)state;
    struct label_box point[5];
    for (int i = 0; i < 5; i++)
        point[i] = (struct label_box){290 + 2 * i, 190 + 2 * i, 310 + 2 * i, 210 + 2 * i};
    struct labels l = {.inside = {0, 0, 600, 400}, .point = point, .points = 5};
    struct markup s = {0};
    labels_keep_off(&l, 0, 180, 600, 180);
    for (int i = 0; i < 5; i++) labels_print(&l, i, "the name of a kernel", &s);
    assert_int_equal(count_of(markup_text(&s), "<text"), 5);
    assert_true(count_of(markup_text(&s), "<path class=\"chart-leader\"") >= 2);
    for (int i = 0; i < 5; i++) {
        const struct label_box *a = &l.label[i];
        assert_true(a->left >= 0 && a->right <= 600 && a->top >= 0 && a->bottom <= 400);
        assert_false(a->top < 180 && a->bottom > 180);
        for (int k = 0; k < 5; k++) {
            const struct label_box *b = &l.label[k], *p = &point[k];
            assert_true(i == k || a->right <= b->left || b->right <= a->left ||
                        a->bottom <= b->top || b->bottom <= a->top);
            assert_true(a->right <= p->left || p->right <= a->left || a->bottom <= p->top ||
                        p->bottom <= a->top);
        }
    }
    markup_release(&s);
}

/* A label is not written across a slope: it moves to the other side of its point. */
static void test_a_slope(void **state)
{
    (void)state;
    struct label_box point = {290, 190, 310, 210};
    struct labels l = {.inside = {0, 0, 600, 400}, .point = &point, .points = 1};
    struct markup s = {0};
    labels_keep_off(&l, 320, 400, 420, 0);
    labels_print(&l, 0, "the name of a kernel", &s);
    assert_int_equal(l.n, 1);
    assert_true(l.label[0].right < 320);
    labels_keep_off(&l, 100, 200, 250, 200);
    l.n = 0;
    labels_print(&l, 0, "the name of a kernel", &s);
    assert_true(l.n == 1 && (l.label[0].bottom <= 190 || l.label[0].top >= 210));
    markup_release(&s);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct label_box point = {10, 10, 30, 30};
    struct labels l = {.inside = {0, 0, 60, 40}, .point = &point, .points = 1};
    struct markup s = {0};
    labels_print(&l, 0, "a name that is far too long for this", &s);
    assert_string_equal(markup_text(&s), "");
    markup_release(&s);
}

/* The number of labels is bounded, however much space there is. */
static void test_most(void **state)
{
    (void)state;
    struct label_box point[LABELS_MOST + 2];
    for (int i = 0; i < LABELS_MOST + 2; i++)
        point[i] = (struct label_box){10, 40 * i + 10, 30, 40 * i + 30};
    struct labels l = {.inside = {0, 0, 900, 900}, .point = point, .points = LABELS_MOST + 2};
    struct markup s = {0};
    for (int i = 0; i < LABELS_MOST + 2; i++) labels_print(&l, i, "name", &s);
    assert_int_equal(count_of(markup_text(&s), "<text"), LABELS_MOST);
    markup_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_crowd),
        cmocka_unit_test(test_a_slope),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
