#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

/* Digests of the examples in FIPS 180-2. */
static void test_published_digests(void **state)
{
    (void)state;
    char hex[HASH_HEX], base64[HASH_BASE64];
    hash_bytes("", 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hash_bytes("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hash_base64("abc", 3, base64);
    assert_string_equal(base64, "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
}

static void test_in_pieces(void **state)
{
    (void)state;
    char piece[1000], hex[HASH_HEX];
    memset(piece, 'a', sizeof piece);
    struct hash *h = hash_open();
    for (int i = 0; i < 1000; i++) hash_add(h, piece, sizeof piece);
    hash_close(h, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_digests),
        cmocka_unit_test(test_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
