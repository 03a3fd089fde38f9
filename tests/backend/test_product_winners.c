/* The file of winners, which programs share. */
#include "base/arena.h"
#include "base/file.h"

#include "../support/cases.h"
#include "../support/hand.h"
#include "../support/workdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef HAVE_CUDA
#include "backend/cuda/product.h"

static const char GPU[] = "a GPU";

static void keep(const char *product, double us)
{
    const cublasLtMatmulAlgo_t algorithm = {{1, 2, 3}};
    const struct product_times times = {us, us, 1};
    product_winner_keep(GPU, product, &algorithm, &times);
}

/* Both have read the file before either writes. */
static void test_two_programs_keep_what_both_found(void **state)
{
    (void)state;
    struct product_choice choice;
    struct arena a = {0};
    char *text;
    int64_t bytes;
    int ended = -1;
    setenv("XDG_CACHE_HOME", workdir_open(), 1);
    assert_false(product_winner(GPU, "ours", &choice));
    pid_t other = fork();
    if (other == 0) {
        keep("theirs", 1);
        keep("of both", 2);
        product_way_keep(GPU, "of both", WAY_APART, 3);
        _exit(0);
    }
    assert_int_equal(waitpid(other, &ended, 0), other);
    assert_int_equal(ended, 0);
    keep("of both", 4);
    keep("ours", 5);
    hand_ok(file_read(workdir_path("strobe/products-a-GPU.json"), &a, &text, &bytes));
    assert_non_null(strstr(text, "\"ours\""));
    assert_non_null(strstr(text, "\"theirs\""));
    assert_true(product_winner(GPU, "theirs", &choice));
    assert_true(product_winner(GPU, "of both", &choice) && choice.us > 3.9);
    assert_true(product_way_us(GPU, "of both", WAY_APART) > 2.9);
    assert_true(product_way_us(GPU, "of both", WAY_WGMMA) == 0);
    arena_release(&a);
    workdir_close();
}
#else
static void test_two_programs_keep_what_both_found(void **state)
{
    (void)state;
    SKIP("built without the CUDA toolkit's headers");
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_programs_keep_what_both_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
