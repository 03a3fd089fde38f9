/* Formulas: trees by their values, every error with its column, derivatives against differences,
 * integers, and random bytes. */
#include "lab/formula.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"x", "y", "n"};
enum { NAMES = COUNT_OF(names) };

static double value_of(const char *text, double x, double y, double n)
{
    struct arena a = {0};
    struct formula f;
    if (formula_parse(&f, text, names, NAMES, &a) != ST_OK) fail_msg("%s", fail_message());
    double of = formula_value(&f, (const double[]){x, y, n});
    arena_release(&a);
    return of;
}

static void test_values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double expected; /* at x = 2, y = 3, n = -5 */
    } all[] = {
        {"x", 2},
        {" 1.5e1 + .5 - 2.", 13.5},
        {"x + y * n", -13},
        {"x - y - n", 4},
        {"x / y / n", 2.0 / 3 / -5},
        {"-x * -y", 6},
        {"--x", 2},
        {"2 - -x", 4},
        {"(x + y) * n", -25},
        {"x < y", 1},
        {"x + 1 <= y", 1},
        {"x > y", 0},
        {"x >= 2", 1},
        {"(x < y) + (n < 0) * 2", 3},
        {"min(x, y) + max(x, y)", 5},
        {"abs(n) + relu(n)", 5},
        {"where(n > 0, log(n), 7)", 7},
        {"where(x, y, n)", 3},
        {"pow(x, 3) + pow(4, -0.5)", 8.5},
        {"sqrt(x * 8) + rsqrt(4)", 4.5},
        {"exp(log(y))", 3},
        {"sigmoid(0) + silu(0) + gelu(0) + gelu_tanh(0) + elu(0) + erf(0) + tanh(0)", 0.5},
        {"\tx\n+\r\ny", 5},
    };
    for (int i = 0; i < COUNT_OF(all); i++) {
        double got = value_of(all[i].text, 2, 3, -5);
        if (!(fabs(got - all[i].expected) < 1e-12))
            fail_msg("%s is %.17g instead of %.17g", all[i].text, got, all[i].expected);
    }
}

/* The sentence, then the formula as it is shown, then the caret at `column` of it. */
static void refuses(const char *text, const char *sentence, const char *shown, int column)
{
    struct arena a = {0};
    struct formula f;
    char expected[2000];
    snprintf(expected, sizeof expected, "%s\n    %s\n    %*s^", sentence, shown, column, "");
    assert_int_equal(formula_parse(&f, text, names, NAMES, &a), ST_USAGE);
    assert_string_equal(fail_message(), expected);
    arena_release(&a);
}

static void test_errors_have_a_caret(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
        int column;
    } all[] = {
        {"", "the formula is empty", 0},
        {"exp(x)-+1)", "an operand is missing after \"-\"", 7},
        {"x +", "an operand is missing after \"+\"", 3},
        {"x <= ", "an operand is missing after \"<=\"", 5},
        {"* x", "an operand is missing before \"*\"", 0},
        {"min(x,)", "an operand is missing after \",\"", 6},
        {"()", "an operand is missing after \"(\"", 1},
        {"(x + 1", "this \"(\" is never closed", 0},
        {"exp(x + (y)", "this \"(\" is never closed", 3},
        {"x + 1)", "this \")\" has no \"(\" before it", 5},
        {"x, y", "a comma can only separate the arguments of a function", 1},
        {"2x", "an operator such as * is missing before \"x\"", 1},
        {"x (y)", "an operator such as * is missing before \"(\"", 2},
        {"1.2.3", "an operator such as * is missing before \".3\"", 3},
        {"x + b", "\"b\" is no known name; the names are x, y and n", 4},
        {"exp x", "exp is a function and needs its argument in parentheses", 0},
        {"min(x)", "min takes 2 arguments; found 1", 5},
        {"exp()", "exp takes 1 argument; found 0", 4},
        {"exp(x, y)", "exp takes 1 argument, and this is one more", 7},
        {"x < y < n", "only two values can be compared; a range is written (0 < x) * (x < 1)", 6},
        {"x ** 2", "\"*\" cannot be used: a power is written pow(x, 2)", 2},
        {"x^2", "\"^\" cannot be used: a power is written pow(x, 2)", 1},
        {"x == y", "\"=\" cannot be used: the comparisons are < <= > and >=", 2},
        {"x + 1e999", "the number 1e999 is too large", 4},
        {"x + \xc3\xa9 * y", "\"\xc3\xa9\" cannot be used in a formula", 4},
        {"$x", "\"$\" cannot be used in a formula", 0},
        {"where(x > 0, x, 0", "this \"(\" is never closed", 5},
    };
    for (int i = 0; i < COUNT_OF(all); i++)
        refuses(all[i].text, all[i].sentence, all[i].text, all[i].column);
    refuses("x +\t\x1b[0m", "\"\\x1b\" cannot be used in a formula", "x +\\t\\x1b[0m", 5);
    refuses("x + \xff", "\"\\xff\" cannot be used in a formula", "x + \\xff", 4);
    refuses("sinh(x)",
            "\"sinh\" is no function; the functions are exp, log, sqrt, rsqrt, tanh, erf, relu, "
            "gelu, gelu_tanh, elu, silu, sigmoid, abs, min, max, pow and where",
            "sinh(x)", 0);
}

/* A long formula is shown around the error alone. */
static void test_long_formulas(void **state)
{
    (void)state;
    struct arena a = {0};
    struct formula f;
    struct str s = {0};
    for (int i = 0; i < 100; i++) str_append(&s, "x*y + ");
    str_append(&s, "? + ");
    for (int i = 0; i < 30; i++) str_append(&s, "x*y + ");
    str_append(&s, "x");
    assert_int_equal(formula_parse(&f, str_text(&s), names, NAMES, &a), ST_USAGE);
    const char *line = strchr(fail_message(), '\n') + 1, *caret = strchr(line, '\n') + 1;
    assert_true(caret - line < 90);
    assert_int_equal(line[strlen(caret) - 1], '?');
    for (int i = 0; i < 1000; i++) str_append(&s, " ");
    assert_int_equal(formula_parse(&f, str_text(&s), names, NAMES, &a), ST_USAGE);
    assert_non_null(strstr(fail_message(), "at most 1000 bytes"));
    str_release(&s);
    arena_release(&a);
}

static void nests(const char *opening, int n, const char *inner, const char *closing, bool ok)
{
    struct arena a = {0};
    struct formula f;
    struct str s = {0};
    for (int i = 0; i < n; i++) str_append(&s, opening);
    str_append(&s, inner);
    for (int i = 0; i < n; i++) str_append(&s, closing);
    enum status st = formula_parse(&f, str_text(&s), names, NAMES, &a);
    assert_int_equal(st, ok ? ST_OK : ST_USAGE);
    if (!ok) assert_non_null(strstr(fail_message(), "may nest 64 deep"));
    str_release(&s);
    arena_release(&a);
}

static void test_nesting_is_bounded(void **state)
{
    (void)state;
    nests("(", FORMULA_DEPTH, "x", ")", true);
    nests("(", FORMULA_DEPTH + 1, "x", ")", false);
    nests("(", 490, "x", ")", false);
    nests("-", FORMULA_DEPTH, "x", "", true);
    nests("-", 999, "x", "", false);
    nests("abs(", 150, "x", ")", false);
    nests("x+", 499, "x", "", true);
}

static const char *const smooth[] = {
    "exp(x)",      "log(x)",        "sqrt(x)",         "rsqrt(x)",
    "tanh(x)",     "erf(x)",        "gelu(x)",         "gelu_tanh(x)",
    "silu(x)",     "sigmoid(x)",    "pow(x, 3)",       "pow(x, -2)",
    "pow(x, 0.5)", "pow(2, x)",     "pow(x, x)",       "x * y / (x + 1)",
    "1 / x",       "-x * x",        "elu(x - 1)",      "relu(x)",
    "abs(-x)",     "min(x * x, 3)", "max(x, 0.1) + x", "where(x < 1, x * x, exp(x))",
    "(x < 1) * x",
};

static void test_derivatives_match_differences(void **state)
{
    (void)state;
    const double step = 1e-6;
    for (int i = 0; i < COUNT_OF(smooth); i++)
        for (double x = 0.27; x < 3; x += 0.31) {
            struct arena a = {0};
            struct formula f;
            assert_int_equal(formula_parse(&f, smooth[i], names, NAMES, &a), ST_OK);
            struct formula_dual d = formula_derivative(&f, (const double[]){x, 0.7, 0}, 0);
            double up = value_of(smooth[i], x + step, 0.7, 0);
            double down = value_of(smooth[i], x - step, 0.7, 0);
            assert_true(d.x == value_of(smooth[i], x, 0.7, 0));
            if (!(fabs((up - down) / (2 * step) - d.d) < 1e-7 * (1 + fabs(d.d))))
                fail_msg("%s at %g: %g instead of %g", smooth[i], x, d.d, (up - down) / (2 * step));
            arena_release(&a);
        }
}

/* What is not chosen contributes nothing, even if it is infinite or not a number. */
static void test_the_other_side_contributes_nothing(void **state)
{
    (void)state;
    static const char *const all[] = {"where(x > 0, log(x), 0)", "where(x > 0, sqrt(x), 0)",
                                      "where(x > 0, 1 / x, 0)", "max(-1, 1 / x) * 0"};
    for (int i = 0; i < COUNT_OF(all); i++)
        for (double x = -1; x <= (i == 3 ? -1 : 0); x++) {
            struct arena a = {0};
            struct formula f;
            assert_int_equal(formula_parse(&f, all[i], names, NAMES, &a), ST_OK);
            struct formula_dual d = formula_derivative(&f, (const double[]){x, 0, 0}, 0);
            assert_true(d.x == 0 && d.d == 0);
            arena_release(&a);
        }
}

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t expected; /* at x = 7, y = -2, n = 1000; ignored if there is an error */
        const char *error;
        int column;
    } all[] = {
        {"(n + 255) / 256", 4, NULL, 0},
        {"x / y", -3, NULL, 0},
        {"min(x, y) * max(x, 3)", -14, NULL, 0},
        {"abs(y) + (x > y) + (x >= 7) + (x < y) + (x <= 6)", 4, NULL, 0},
        {"9223372036854775807", INT64_MAX, NULL, 0},
        {"where(x > 0, x, 1 / 0)", 7, NULL, 0},
        {"x / (y + 2)", 0, "the divisor is 0", 2},
        {"9223372036854775807 + 1", 0, "the result does not fit into 64 bits", 20},
        {"(-9223372036854775807 - 1) / -1", 0, "the result does not fit into 64 bits", 27},
        {"-(-9223372036854775807 - 1)", 0, "the result does not fit into 64 bits", 0},
        {"n * n * n * n * n * n * n", 0, "the result does not fit into 64 bits", 22},
        {"9223372036854775808", 0, "the number must be an integer of 64 bits here", 0},
        {"n * 1.5", 0, "the number must be an integer of 64 bits here", 4},
        {"1 + exp(n)", 0,
         "this function has no value in integers; min, max, abs and where have one", 4},
        {"where(x / 0, 1, 2)", 0, "the divisor is 0", 8},
    };
    for (int i = 0; i < COUNT_OF(all); i++) {
        struct arena a = {0};
        struct formula f;
        int64_t got = 0;
        char expected[400];
        assert_int_equal(formula_parse(&f, all[i].text, names, NAMES, &a), ST_OK);
        enum status st = formula_integer(&f, (const int64_t[]){7, -2, 1000}, &got);
        assert_int_equal(st, all[i].error ? ST_USAGE : ST_OK);
        snprintf(expected, sizeof expected, "%s\n    %s\n    %*s^", all[i].error, all[i].text,
                 all[i].column, "");
        if (all[i].error)
            assert_string_equal(fail_message(), expected);
        else
            assert_int_equal(got, all[i].expected);
        arena_release(&a);
    }
}

/* Any bytes are either a formula that can be evaluated or an error whose caret is in its line. */
static void try_bytes(const char *text)
{
    struct arena a = {0};
    struct formula f;
    int64_t ignored;
    const double values[] = {0.5, -1, 3};
    if (formula_parse(&f, text, names, NAMES, &a) == ST_OK) {
        assert_true(f.nodes > 0 && f.nodes <= FORMULA_BYTES);
        for (int i = 0; i < f.nodes; i++)
            for (int k = 0; k < f.node[i].args; k++) assert_true(f.node[i].arg[k] < i);
        (void)formula_derivative(&f, values, 0);
        if (formula_integer(&f, (const int64_t[]){7, -2, 1000}, &ignored) != ST_OK)
            assert_non_null(strchr(fail_message(), '^'));
    } else {
        const char *line = strchr(fail_message(), '\n'),
                   *caret = line ? strchr(line + 1, '\n') : "";
        if (line) assert_true(caret && strlen(caret) <= strlen(line) + 6);
    }
    arena_release(&a);
}

static void test_random_bytes(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "x", "y",  "n", "1",    "2.5", "(",    ")",    ",",   "+",    "-",        "*",  "/",
        "<", ">=", " ", "exp(", "b",   "min(", "pow(", "1e9", "\xc3", "\xf0\x9f", "\t", "."};
    srand(3);
    for (int i = 0; i < 40000; i++) {
        struct str s = {0};
        for (int n = rand() % 24; n > 0; n--) {
            char byte = (char)(1 + rand() % 255);
            if (i % 2)
                str_append_bytes(&s, &byte, 1);
            else
                str_append(&s, pieces[rand() % COUNT_OF(pieces)]);
        }
        try_bytes(str_text(&s));
        str_release(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_errors_have_a_caret),
        cmocka_unit_test(test_long_formulas),
        cmocka_unit_test(test_nesting_is_bounded),
        cmocka_unit_test(test_derivatives_match_differences),
        cmocka_unit_test(test_the_other_side_contributes_nothing),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_random_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
