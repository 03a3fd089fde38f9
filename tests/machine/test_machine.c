/* The record of a machine's peaks: plausible, stored, found, and not confused with another's. */
#include "machine/machine.h"

#include "../support/workdir.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/load.h"
#include "base/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    workdir_open();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    workdir_close();
    arena_release(&arena);
    return 0;
}

static struct machine somebody(const char *cpu, int threads)
{
    return (struct machine){
        .name = cpu,
        .isa = "avx2",
        .library = "none",
        .threads = threads,
        .date = "2026-11-21T08:22:13Z",
        .peak = {{MACHINE_F32, 4e11, 2e11, 1024, 512, 256, "onednn"}},
        .peaks = 1,
        .copy = {{1 << 14, 9e11, 5e11}, {1 << 20, 2e11, 1e11}, {1 << 30, 4e10, 2e10}},
        .copies = 3,
        .cache_bytes = 2 << 20,
        .history = {{.date = "2026-11-21T08:22:13Z", .flops = {4e11}, .moved = 4e10}},
        .measurements = 1,
    };
}

/* The same machine without measurements. */
static struct machine unknown(const struct machine *m)
{
    return (struct machine){.gpu = m->gpu,
                            .name = m->name,
                            .isa = m->isa,
                            .library = m->library,
                            .threads = m->threads};
}

static void test_measured(void **state)
{
    (void)state;
    struct machine m;
    threads_set(2);
    struct device cpu = {backend_find("cpu"), 0};
    assert_int_equal(machine_identify(&m, &cpu, &arena), ST_OK);
    assert_int_equal(m.threads, 2);
    assert_int_equal(machine_measure(&m, true, NULL, NULL, &arena), ST_OK);
    assert_int_equal(threads_count(), 2);
    const struct machine_peak *p = machine_peak(&m, MACHINE_F32);
    assert_non_null(p);
    assert_true(p->flops_one > 1e7 && p->flops >= p->flops_one && p->flops < 1e15);
    assert_true(p->M > 0 && p->N > 0 && p->K > 0 && *p->kernel);
    assert_null(machine_peak(&m, MACHINE_TF32)); /* only on GPUs */
    assert_true(m.copies > 4);
    assert_true(m.copy[0].moved >= m.copy[0].moved_one);
    for (int i = 1; i < m.copies; i++) {
        assert_true(m.copy[i].moved >= m.copy[i].moved_one);
        assert_true(m.copy[i].bytes > m.copy[i - 1].bytes);
        assert_true(m.copy[i].moved > 0 && m.copy[i].moved <= m.copy[i - 1].moved);
        assert_true(m.copy[i].moved_one > 0 && m.copy[i].moved_one <= m.copy[i - 1].moved_one);
    }
    assert_true(machine_copy_large(&m)->moved > 1e8 && machine_copy_large(&m)->moved < 1e14);
    threads_set(1);
}

static void test_ceiling_of_a_size(void **state)
{
    (void)state;
    struct machine m = somebody("A", 2);
    struct ceilings c = machine_ceilings(&m);
    assert_true(floor_copy_rate(&c, 100) == 9e11);
    assert_true(floor_copy_rate(&c, 2.0 * (1 << 20)) == 2e11); /* 1 MiB per thread */
    assert_true(floor_copy_rate(&c, 1e12) == 4e10);
    double between = floor_copy_rate(&c, 2.0 * (1 << 25)); /* half way in powers of two */
    assert_true(between > 1.199e11 && between < 1.201e11);
    assert_true(machine_copy_in_cache(&m)->bytes == 1 << 20);
}

static void test_kept_and_found(void **state)
{
    (void)state;
    const char *path = arena_printf(&arena, "%s/cache/strobe/machine.json", workdir_path(""));
    struct machine a = somebody("A", 2), other = somebody("B", 2), single = somebody("A", 1), m;
    m = unknown(&a);
    assert_false(machine_read(&m, path, &arena));
    a.quick = true;
    assert_int_equal(machine_write(&a, path, false, &arena), ST_OK);
    assert_true(machine_read(&m, path, &arena));
    assert_true(m.quick && m.peaks == 1 && m.copies == 3 && m.peak[0].flops == 4e11);
    assert_true(m.peak[0].flops_one == 2e11 && m.peak[0].N == 512 && m.copy[2].moved_one == 2e10);
    assert_string_equal(m.peak[0].kernel, "onednn");
    assert_string_equal(m.date, "2026-11-21T08:22:13Z");

    /* not another processor's, nor that of other threads, libraries or instructions */
    m = unknown(&other);
    assert_false(machine_read(&m, path, &arena));
    assert_true(m.peaks == 0 && !m.date);
    m = unknown(&single);
    assert_false(machine_read(&m, path, &arena));
    m = unknown(&a);
    m.library = "oneDNN 9.9";
    assert_false(machine_read(&m, path, &arena));
    m = unknown(&a);
    m.gpu = true; /* with that name */
    assert_false(machine_read(&m, path, &arena));
    m = unknown(&a);
    m.isa = "avx2 avx512f";
    assert_false(machine_read(&m, path, &arena));

    /* other machines' records stay, the machine's own is replaced */
    assert_int_equal(machine_write(&other, path, false, &arena), ST_OK);
    a.quick = false;
    a.peak[0].flops = 5e11;
    assert_int_equal(machine_write(&a, path, false, &arena), ST_OK);
    m = unknown(&other);
    assert_true(machine_read(&m, path, &arena));
    m = unknown(&a);
    assert_true(machine_read(&m, path, &arena));
    assert_true(!m.quick && m.peak[0].flops == 5e11);
    char *text;
    int64_t size;
    assert_int_equal(file_read(path, &arena, &text, &size), ST_OK);
    assert_null(strstr(strstr(text, "\"A\"") + 1, "\"A\"")); /* once */
}

/* The best of three measurements stays, whatever the last one gave, with the history of all. */
static void test_the_best_is_kept(void **state)
{
    (void)state;
    static const double flops[] = {1.15e11, 2.27e11, 1.16e11}, others[] = {700, 0, 900};
    const char *path = workdir_path("best.json");
    struct machine m;
    for (int i = 0; i < 3; i++) {
        struct machine now = somebody("A", 2);
        now.quick = now.history[0].quick = i != 1;
        now.others = now.history[0].others = others[i];
        now.peak[0].flops = now.history[0].flops[0] = flops[i];
        now.peak[0].flops_one = i == 2 ? 2.1e11 : 1e11;
        now.copy[1].moved = i == 1 ? 1e11 : 2e11;
        now.copies = i == 0 ? 3 : 2; /* the first went further */
        assert_int_equal(machine_write(&now, path, false, &arena), ST_OK);
        m = unknown(&now);
        assert_true(machine_read(&m, path, &arena));
        assert_int_equal(m.measurements, i + 1);
    }
    double low = 0;
    assert_true(m.peaks == 1 && m.peak[0].flops == 2.27e11 && m.peak[0].flops_one == 2.1e11);
    assert_true(m.copies == 3 && m.copy[1].moved == 2e11 && m.copy[2].moved == 4e10);
    assert_true(!m.quick && m.others == 0 && !load_is_busy(m.others));
    assert_true(load_is_busy(m.history[2].others) && m.history[2].quick);
    assert_int_equal(machine_lowest(&m, MACHINE_F32, &low), 3);
    assert_true(low == 1.15e11);
    assert_int_equal(machine_lowest(&m, MACHINE_BF16, &low), 0);

    /* A larger copy is a lower limit for the smaller ones. */
    struct machine now = somebody("A", 2);
    now.copy[2].moved = 3e11;
    machine_keep_best(&m, &now);
    assert_true(m.copy[1].moved == 3e11 && m.copy[2].moved == 3e11);

    for (int i = 0; i < 2 * MACHINE_HISTORY; i++) machine_keep_best(&m, &now);
    assert_int_equal(m.measurements, MACHINE_HISTORY);
    assert_int_equal(machine_write(&now, path, true, &arena), ST_OK);
    m = unknown(&now);
    assert_true(machine_read(&m, path, &arena) && m.measurements == 1 && m.peak[0].flops == 4e11);
}

/* A record of a version without a history is its own only measurement. */
static void test_without_history(void **state)
{
    (void)state;
    struct machine a = somebody("A", 2), m = unknown(&a);
    const char *path = workdir_path("old.json");
    a.others = 0.5;
    assert_int_equal(machine_write(&a, path, false, &arena), ST_OK);
    char *text, *at;
    int64_t size;
    assert_int_equal(file_read(path, &arena, &text, &size), ST_OK);
    assert_non_null(at = strstr(text, "\"history\""));
    at[1] = 'x';
    workdir_text("old.json", text);
    assert_true(machine_read(&m, path, &arena));
    assert_true(m.measurements == 1 && m.history[0].others == 0.5 &&
                m.history[0].flops[MACHINE_F32] == 4e11);
    assert_true(m.history[0].moved == 4e10);
}

/* The GPU's record is separate from the CPU's. */
static void test_a_gpu(void **state)
{
    (void)state;
    const char *path = workdir_path("machine.json");
    struct machine cpu = somebody("A", 1), gpu = somebody("A", 1), m;
    gpu.gpu = true;
    gpu.peak[0].precision = MACHINE_TF32;
    gpu.others = 0;
    assert_int_equal(machine_write(&cpu, path, false, &arena), ST_OK);
    assert_int_equal(machine_write(&gpu, path, false, &arena), ST_OK);
    m = unknown(&gpu);
    m.device.number = 3;
    assert_true(machine_read(&m, path, &arena));
    assert_true(m.gpu && m.device.number == 3 && machine_peak(&m, MACHINE_TF32)->flops == 4e11);
    m = unknown(&cpu);
    assert_true(machine_read(&m, path, &arena));
    assert_true(!m.gpu && machine_peak(&m, MACHINE_F32) && !machine_peak(&m, MACHINE_TF32));
}

/* All-reduces of each size; kept at their best, each number of ranks by itself. */
static void test_slow_bf16(void **state)
{
    (void)state;
    struct machine m = {.peaks = 2,
                        .peak = {{.precision = MACHINE_F32, .flops = 2e11},
                                 {.precision = MACHINE_BF16, .flops = 1e11}}};
    assert_true(machine_has_slow_bf16(&m));
    m.peak[1].flops = 3e11;
    assert_false(machine_has_slow_bf16(&m));
    m.peaks = 1;
    assert_false(machine_has_slow_bf16(&m));
}

static void test_links(void **state)
{
    (void)state;
    const char *path = workdir_path("links.json");
    struct machine m = somebody("A", 1), once = m, more = m, found = unknown(&m);
    assert_int_equal(machine_measure_links(&m, 2, true, NULL, NULL), ST_OK);
    assert_int_equal(m.links, 8);
    for (int i = 0; i < m.links; i++) {
        assert_int_equal(m.link[i].bytes, (int64_t)4096 << 2 * i);
        assert_true(m.link[i].ranks == 2 && m.link[i].sent > 1e6 && m.link[i].sent < 1e13);
    }
    once.links = 2;
    once.link[0] = (struct machine_link){2, 4096, 1e8};
    once.link[1] = (struct machine_link){2, 65536, 3e8};
    more.links = 2;
    more.link[0] = (struct machine_link){2, 4096, 2e8};
    more.link[1] = (struct machine_link){4, 4096, 5e8};
    assert_int_equal(machine_write(&once, path, false, &arena), ST_OK);
    assert_int_equal(machine_write(&more, path, false, &arena), ST_OK);
    assert_true(machine_read(&found, path, &arena));
    assert_int_equal(found.links, 3);
    assert_true(machine_link_rate(&found, 2, 1) == 2e8);
    assert_true(machine_link_rate(&found, 2, 1e9) == 3e8);
    double between = machine_link_rate(&found, 2, 16384); /* half way in powers of two */
    assert_true(between > 2.499e8 && between < 2.501e8);
    assert_true(machine_link_rate(&found, 4, 4096) == 5e8);
    assert_true(machine_link_rate(&found, 3, 4096) == 0);
    /* a record whose sizes do not rise is damaged */
    once.link[1].bytes = 4096;
    assert_int_equal(machine_write(&once, path, true, &arena), ST_OK);
    found = unknown(&m);
    assert_false(machine_read(&found, path, &arena));
}

static void test_damaged(void **state)
{
    (void)state;
    struct machine a = somebody("A", 2), m;
    const char *path = workdir_path("machine.json");
    static const char *const changes[][2] = {
        {"\"v\": 1", "\"v\": 2"},
        {"\"flops_per_s\": 4", "\"flops_per_s\": -4"},
        {"\"dtype\": \"f32\"", "\"dtype\": \"f31\""},
        {"\"bytes_per_thread\": 1048576", "\"bytes_per_thread\": 16384"},
        {"\"products\"", "\"product\""},
        {"\"date\"", "\"data\""},
        {"{", "["},
    };
    assert_int_equal(machine_write(&a, path, false, &arena), ST_OK);
    char *good;
    int64_t size;
    assert_int_equal(file_read(path, &arena, &good, &size), ST_OK);
    for (int i = 0; i < COUNT_OF(changes); i++) {
        char *at = strstr(good, changes[i][0]);
        if (!at) fail_msg("%s is not in the file", changes[i][0]);
        workdir_text("machine.json", arena_printf(&arena, "%.*s%s%s", (int)(at - good), good,
                                                  changes[i][1], at + strlen(changes[i][0])));
        m = unknown(&a);
        if (machine_read(&m, path, &arena)) fail_msg("accepted with %s", changes[i][1]);
    }
    workdir_text("machine.json", arena_printf(&arena, "%.*s", (int)size / 2, good));
    m = unknown(&a);
    assert_false(machine_read(&m, path, &arena));
    assert_int_equal(machine_write(&a, path, false, &arena), ST_OK); /* a new record replaces it */
    assert_true(machine_read(&m, path, &arena));
}

/* Records of other machines are not lost because the file cannot be read now. */
static void test_unreadable(void **state)
{
    (void)state;
    struct machine a = somebody("A", 2), m = unknown(&a);
    const char *path = workdir_path("machine.json");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(machine_read(&m, path, &arena)); /* nor does it wait for a writer */
    assert_int_equal(machine_write(&a, path, false, &arena), ST_FORMAT);
    assert_non_null(strstr(fail_message(), "is a FIFO"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_measured, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ceiling_of_a_size, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kept_and_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_best_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_history, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_gpu, setup, teardown),
        cmocka_unit_test(test_slow_bf16),
        cmocka_unit_test_setup_teardown(test_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unreadable, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
