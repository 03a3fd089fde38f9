#include "engine/environment.h"

#include "../support/workdir.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_every_field_is_there(void **state)
{
    (void)state;
    struct arena arena = {};
    workdir_open();
    struct environment e;
    environment_gather(&e, &arena);
    assert_true(e.cores >= 1 && e.cores_usable >= 1 && e.memory_bytes > 1 << 24);
    assert_int_equal(strlen(e.date), strlen("2026-11-21T08:22:13Z"));
    e.version = "1.2.3";
    e.threads = 7;
    e.isa = "avx2";
    environment_add_library(&e, "cuBLASLt", "13.0");
    assert_int_equal(environment_write(&e, workdir_path("env.json")), ST_OK);
    json_t *o = json_load_file(workdir_path("env.json"), 0, NULL);
    static const char *const texts[] = {"version", "commit", "mode",   "compiler",
                                        "cpu",     "os",     "kernel", "date"};
    for (int i = 0; i < COUNT_OF(texts); i++)
        assert_true(json_string_length(json_object_get(o, texts[i])) > 0);
    assert_string_equal(json_string_value(json_object_get(o, "version")), "1.2.3");
    assert_int_equal(json_integer_value(json_object_get(o, "threads")), 7);
    assert_true(json_is_null(json_object_get(o, "device")));
    assert_string_equal(json_string_value(json_object_get(o, "isa")), "avx2");
    assert_true(json_is_null(json_object_get(o, "isa_library")));
    json_t *libraries = json_object_get(o, "libraries");
    assert_string_equal(json_string_value(json_object_get(libraries, "cuBLASLt")), "13.0");
    assert_string_equal(json_string_value(json_object_get(libraries, "jansson")),
                        jansson_version_str());
    json_decref(o);
    arena_release(&arena);
    workdir_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_field_is_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
