/* The commands that measure, run as a user does at tiny sizes: what they print, store and refuse.
 * test: slow */
#include "../support/program.h"
#include "../support/workdir.h"
#include "backend/backend.h"
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <string.h>

static const char TINY[] = "--n_layer=1 --n_head=2 --n_embd=16 --block_size=16 --batch_size=2 "
                           "--threads=1 --device=cpu --data_dir=/nowhere";

/* All tests share a cache directory, so the machine is measured once. */
static int strobe(const char *words)
{
    return program_run(arena_printf(&arena, "XDG_CACHE_HOME=%s", workdir_path("cache")), words);
}

static const char *record(void)
{
    return workdir_path("cache/strobe/machine.json");
}

static json_t *json_of_version(const char *words, int version)
{
    if (strobe(words) != 0) fail_msg("%s: %s", words, program_stderr);
    json_error_t error;
    json_t *all = json_loads(program_stdout, JSON_REJECT_DUPLICATES, &error);
    if (!all) fail_msg("%s, line %d of %s", error.text, error.line, program_stdout);
    assert_int_equal(json_integer_value(json_object_get(all, "v")), version);
    return all;
}

static json_t *json_of(const char *words)
{
    return json_of_version(words, 1);
}

static double number(const json_t *object, const char *key)
{
    const json_t *x = json_object_get(object, key);
    if (!json_is_number(x)) fail_msg("no number %s", key);
    return json_number_value(x);
}

static const char *text(const json_t *object, const char *key)
{
    const char *x = json_string_value(json_object_get(object, key));
    if (!x) fail_msg("no text %s", key);
    return x;
}

static void refuses(const char *words, int code, const char *sentence)
{
    assert_int_equal(strobe(words), code);
    if (!strstr(program_stderr, sentence)) fail_msg("%s: %s", words, program_stderr);
    assert_string_equal(program_stdout, "");
}

/* Refused, unless this machine has eight GPUs. */
static void refuses_the_eighth_gpu(const char *command)
{
    const struct backend *cuda = backend_find("cuda");
    if (cuda && cuda->devices.count() > 7) return;
    refuses(arena_printf(&arena, "%s --device=cuda:7", command), 1,
            cuda ? "no NVIDIA GPU can be used" : "this build has no CUDA backend");
}

static int lines_of(const char *s)
{
    int n = 0;
    for (; (s = strchr(s, '\n')); s++) n++;
    return n;
}

/* --- machine --- */

static void test_machine(void **state)
{
    (void)state;
    json_t *m = json_of("machine --device=cpu --quick --threads=1 --json");
    assert_string_equal(text(m, "path"), record());
    assert_true(file_exists(record()));
    assert_true(number(m, "threads") == 1 && json_is_true(json_object_get(m, "quick")));
    const json_t *matmuls = json_object_get(m, "products"), *copies = json_object_get(m, "copies");
    assert_true(json_array_size(matmuls) >= 1 && json_array_size(copies) > 4);
    assert_string_equal(text(json_array_get(matmuls, 0), "dtype"), "f32");
    assert_true(number(json_array_get(matmuls, 0), "flops_per_s") > 1e7);
    json_decref(m);
    m = json_of("machine --device=cpu --quick --threads=1 --forget --json");
    assert_int_equal(json_array_size(json_object_get(m, "history")), 1);
    json_decref(m);
    refuses("machine now", 2, "machine takes only options; found now");
    refuses("machine --threads=-1", 2, "--threads must be 0 to 4096");
    refuses("machine --isa=mmx", 2, "mmx");
    refuses("machine --device=tpu", 2, "device");
    refuses_the_eighth_gpu("machine");
}

/* Sets the number of processors that other programs kept busy during the measurement, which is
 * otherwise random. */
static void set_others(const char *processors)
{
    static const char key[] = "\"others\": ";
    const char *at = program_text(record()), *next, *whole = "";
    for (; (next = strstr(at, key)); at = next) {
        next += strlen(key);
        whole = arena_printf(&arena, "%s%.*s%s", whole, (int)(next - at), at, processors);
        next += strspn(next, "0123456789.e-+");
    }
    workdir_text("cache/strobe/machine.json", arena_printf(&arena, "%s%s", whole, at));
}

/* The record of this machine is used; if it is another machine's or unreadable, a new one is
 * made. */
static void test_the_record_is_used_or_replaced(void **state)
{
    (void)state;
    const char *words = arena_printf(&arena, "bench kernels --op=matmul --samples=1 %s", TINY);
    const char *measuring = "are not known yet";
    set_others("0");
    assert_int_equal(strobe(words), 0);
    assert_null(strstr(program_stderr, "measur"));
    const char *good = program_text(record());

    char *other = arena_strdup(&arena, good);
    char *cpu = strstr(other, "\"cpu\": \"");
    assert_non_null(cpu);
    cpu[8] ^= 1;
    workdir_text("cache/strobe/machine.json", other);
    assert_int_equal(strobe(words), 0);
    assert_non_null(strstr(program_stderr, measuring));
    /* The other machine's record is kept. */
    assert_true(lines_of(program_text(record())) > lines_of(good));

    assert_int_equal(strobe(arena_printf(&arena, "%s --threads=2", words)), 0);
    assert_non_null(strstr(program_stderr, "with 2 threads are not known yet"));

    set_others("7.5"); /* no command stops to measure where a record is there */
    assert_int_equal(strobe(words), 0);
    assert_null(strstr(program_stderr, "measur"));
    assert_non_null(
        strstr(program_stdout, "while other programs were busy, so they may be too low"));

    workdir_truncate(record(), (int64_t)strlen(good) / 2);
    assert_int_equal(strobe(words), 0);
    assert_non_null(strstr(program_stderr, measuring));
    set_others("0");
    assert_int_equal(strobe(words), 0);
    assert_null(strstr(program_stderr, "measur"));

    /* The commands work even if the record cannot be stored. */
    assert_int_equal(program_run("HOME= XDG_CACHE_HOME=relative", words), 0);
    assert_non_null(strstr(program_stderr, "neither XDG_CACHE_HOME nor HOME is set"));
    workdir_text("in_the_way", "");
    const char *blocked = arena_printf(&arena, "XDG_CACHE_HOME=%s", workdir_path("in_the_way"));
    assert_int_equal(program_run(blocked, words), 0);
    assert_non_null(strstr(program_stderr, "warning: the peaks are not stored"));
}

/* --- bench kernels --- */

static void test_bench_kernels(void **state)
{
    (void)state;
    json_t *k =
        json_of(arena_printf(&arena, "bench kernels --json --samples=2 --limit=1 %s", TINY));
    const json_t *rows = json_object_get(k, "rows"), *matmuls = json_object_get(k, "products");
    double step_us = 0, matmul_us = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *r = json_array_get(rows, i);
        bool is_matmul = !strcmp(text(r, "op"), "MATMUL") || !strcmp(text(r, "op"), "LINEAR");
        double share = number(r, "share_percent");
        assert_true(number(r, "us_median") > 0 && share > 0 && share < 1000);
        assert_true(!strcmp(text(r, "ceiling"), "copy") || !strcmp(text(r, "ceiling"), "matmul"));
        if (json_is_null(json_object_get(r, "in_plan"))) continue;
        double us = number(r, "us_per_step");
        assert_true(us > 0.99 * number(r, "us_median") * number(r, "calls_per_step"));
        step_us += us;
        if (is_matmul) matmul_us += us;
    }
    assert_true(step_us > 0.999e3 * number(k, "ms_per_step"));
    assert_true(step_us < 1.001e3 * number(k, "ms_per_step"));
    assert_true(matmul_us > 0.999e3 * number(matmuls, "ms_of_rows"));
    assert_true(matmul_us < 1.001e3 * number(matmuls, "ms_of_rows"));
    assert_int_equal((int)number(matmuls, "calls"), 3 + 4 * 3);
    assert_true(number(matmuls, "ms_median") > 0);
    json_decref(k);
}

static void test_formats_of_bench_kernels(void **state)
{
    (void)state;
    const char *words =
        arena_printf(&arena, "bench kernels --op=adamw --dtype=float32 --samples=1 %s", TINY);
    assert_int_equal(strobe(arena_printf(&arena, "%s --csv", words)), 0);
    assert_memory_equal(program_stdout, "op,shape,dtype,calls_per_step,kernel,", 37);
    assert_non_null(strstr(program_stdout, "\nADAMW,"));
    assert_int_equal(strobe(arena_printf(&arena, "%s --markdown", words)), 0);
    assert_memory_equal(program_stdout, "| operator ", 11);
    assert_int_equal(strobe(words), 0);
    assert_non_null(strstr(program_stdout, "`strobe machine` measures again"));
    assert_null(strstr(program_stdout, "matmuls alone")); /* one operator only */
}

static void test_bench_refuses(void **state)
{
    (void)state;
    refuses("bench", 2, "no configuration given");
    refuses("bench kernels --op=GELLU", 2, "there is no operator GELLU; docs/OPS.md lists them");
    refuses(arena_printf(&arena, "bench kernels --op=rsqrt %s", TINY), 2,
            "a step of this configuration does not use RSQRT");
    refuses("bench kernels --samples=0", 2, "--samples must be 1 to");
    refuses("bench kernels --json --csv", 2,
            "--json, --csv and --markdown contradict each other; keep one");
    refuses("bench kernels --n_head=7", 2, "n_embd = 128 is not divisible by n_head = 7");
    refuses("bench kernels nowhere.conf", 1, "there is no file or folder nowhere.conf");
    refuses("bench kernels --vocab=-1", 2, "--vocab is 1 to");
    refuses("bench kernels --n_layer=4 --n_embd=65536 --n_head=64 --vocab=65", 1, "of memory, and");
}

/* --- bench attention --- */

static void test_bench_attention(void **state)
{
    (void)state;
    const char *svg = workdir_path("attention.svg");
    const char *words =
        arena_printf(&arena,
                     "bench attention --device=cpu --T=16,32 --tokens=32 --heads=2 --head_size=8 "
                     "--samples=2 --dtype=float32 --threads=1 --svg=%s",
                     svg);
    json_t *all = json_of_version(arena_printf(&arena, "%s --json", words), 2);
    const json_t *rows = json_object_get(all, "rows");
    assert_int_equal(json_array_size(rows), 2 * 4);
    assert_string_equal(text(all, "command"), arena_printf(&arena, "strobe %s --json", words));
    assert_true(strlen(text(all, "commit")) >= 7);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *r = json_array_get(rows, i), *slow = json_array_get(rows, i / 4 * 4 + 1);
        assert_string_equal(text(slow, "attention"), "slow op");
        double ms = number(r, "forward_ms") + number(r, "backward_ms");
        double slow_ms = number(slow, "forward_ms") + number(slow, "backward_ms");
        assert_true(ms > 0 && number(r, "bytes") > 0 && number(r, "times_slow_op") > 0);
        assert_true(number(r, "samples") == 2); /* medians do not add up */
        assert_true(number(r, "times_slow_op") > 0.5 * slow_ms / ms);
        assert_true(number(r, "times_slow_op") < 2 * slow_ms / ms);
    }
    json_decref(all);
    const char *picture = program_text(svg);
    assert_memory_equal(picture, "<svg ", 5);
    assert_non_null(strstr(picture, "flash, f32, 32: "));
    assert_non_null(strstr(picture, "Attention, 2 heads of 8, 32 tokens in total"));
    assert_non_null(strstr(picture, "FLOP/s</title>"));
    assert_non_null(strstr(program_stderr, arena_printf(&arena, "picture: %s\n", svg)));
    assert_int_equal(strobe(words), 0);
    assert_non_null(strstr(program_stdout, "slow primitive"));
    assert_non_null(strstr(program_stdout, "2.5 times that backward"));
    assert_int_equal(strobe(arena_printf(&arena, "%s --flash_only", words)), 0);
    assert_non_null(strstr(program_stdout, "  flash  "));
    assert_null(strstr(program_stdout, "slow"));
    assert_null(strstr(program_stdout, "error y"));
    assert_null(strstr(program_stdout, "clk/tile"));
    assert_null(strstr(program_stdout, "x flash"));
    assert_int_equal(strobe(arena_printf(&arena, "%s --flash_only --markdown", words)), 0);
    assert_non_null(strstr(program_stdout, "| dtype | D | causal |"));
    assert_non_null(strstr(program_stdout, " standard deviation\n\nFLOPs: ")); /* paragraphs */
}

static void test_grid_of_bench_attention(void **state)
{
    (void)state;
    const char *words =
        arena_printf(&arena,
                     "bench attention --device=cpu --T=16,32 --tokens=32 --heads=2 --head_size=8,4 "
                     "--causal=false,true --check=true --samples=2 --dtype=float32,bfloat16 "
                     "--threads=1 --flash_only --layout=packed --svg=%s",
                     workdir_path("grid.svg"));
    json_t *all = json_of_version(arena_printf(&arena, "%s --json", words), 2);
    const json_t *rows = json_object_get(all, "rows");
    assert_string_equal(text(all, "layout"), "packed");
    assert_int_equal(json_array_size(rows), 2 * 2 * 2 * 2);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *r = json_array_get(rows, i);
        bool bf16 = i % 2;
        assert_true(number(r, "head_size") == (i < 8 ? 8 : 4) && number(r, "heads") == 2);
        assert_string_equal(text(r, "causal"), i / 4 % 2 ? "false" : "true");
        assert_true(number(r, "T") == (i / 2 % 2 ? 32 : 16));
        assert_string_equal(text(r, "dtype"), bf16 ? "bf16" : "f32");
        assert_true(text(r, "forward_kernel")[0] && text(r, "backward_kernel")[0]);
        assert_true(number(r, "forward_bound_percent") > 0);
        assert_true(number(r, "error_y") > (bf16 ? 1e-4 : 1e-9));
        assert_true(number(r, "error_dqkv") < (bf16 ? 1e-2 : 1e-6));
        assert_true(json_is_null(json_object_get(r, "clock_mhz")));
    }
    json_decref(all);
    assert_non_null(strstr(program_text(workdir_path("grid.svg")), "flash, bf16, D 4, full, 32: "));
    assert_int_equal(strobe(arena_printf(&arena, "%s --markdown", words)), 0);
    assert_memory_equal(program_stdout, "| dtype ", 8);
    assert_non_null(strstr(program_stdout, "error: y, and dq, dk, dv together"));
}

static void test_bench_attention_refuses(void **state)
{
    (void)state;
    refuses("bench attention --device=cpu --T=64,x", 2,
            "--T takes up to 24 lengths, as in 64,128,256; found 64,x");
    refuses("bench attention --device=cpu --T=", 2, "--T takes up to");
    refuses("bench attention --device=cpu --T=64,32", 2,
            "--T takes increasing lengths; 32 follows 64");
    refuses("bench attention --device=cpu --T=100", 2,
            "8192 tokens are not a multiple of sequence length 100");
    refuses("bench attention --device=cpu --dtype=float16", 2,
            "--dtype takes float32, bfloat16 and");
    refuses("bench attention --device=cpu --dtype=float32,float32", 2,
            "--dtype takes float32, bfloat16 and, on a GPU, tfloat32");
    refuses("bench attention --device=cpu --dtype=tfloat32", 1, "tfloat32 needs a CUDA device");
    refuses("bench attention --device=cpu --heads=0", 2, "--heads must be 1 to 1024");
    refuses("bench attention --device=cpu --kv_heads=4", 2,
            "--heads=6 is not divisible by --kv_heads=4");
    refuses("bench attention --device=cpu --tokens=0", 2, "--tokens must be 1 to");
    refuses("bench attention configs/gpt2_124m.conf", 2, "bench attention takes only options");
    refuses("bench attention --device=cpu --heads=-1", 2, "--heads must be 1 to 1024");
    refuses("bench attention --device=cpu --tokens=-1", 2, "--tokens must be 1 to");
    refuses("bench attention --device=cpu --head_size=64,0", 2,
            "--head_size takes up to 8 different sizes of 1 to 1024, as in 64,128; found 64,0");
    refuses("bench attention --device=cpu --head_size=64,64", 2, "--head_size takes up to 8");
    refuses("bench attention --device=cpu --causal=yes", 2,
            "--causal takes true, false or both, as in true,false; found yes");
    refuses("bench attention --device=cpu --causal=true,true", 2, "--causal takes true, false");
    refuses("bench attention --device=cpu --check=true,false", 2, "--check takes true or false");
    refuses("bench attention --device=cpu --layout=separate", 2, "layout");
    refuses("bench attention --device=cpu --hopper=true,false", 1,
            "--hopper and --deterministic choose between GPU kernels");
    refuses("bench attention --device=cpu --deterministic=true", 1, "--hopper and --determ");
    refuses("bench attention --isa=mmx", 2, "mmx");
}

/* --- ladder --- */

static void test_ladder(void **state)
{
    (void)state;
    const char *words =
        arena_printf(&arena, "ladder configs/shakespeare_char_cpu.conf --steps=3 %s", TINY);
    json_t *all = json_of(arena_printf(&arena, "%s --json", words));
    const json_t *rungs = json_object_get(all, "rungs");
    assert_int_equal(json_array_size(rungs), 7);
    assert_true(number(all, "vocabulary") == 65 && number(all, "tokens_per_step") == 32);
    assert_string_equal(text(all, "formula"), "6 N + 12 L C T");
    assert_true(number(all, "flops_per_token") == 6 * number(all, "parameters") + 12 * 1 * 16 * 16);
    const json_t *slow = json_array_get(rungs, 0);
    double times = 1, first = number(slow, "mfu_percent") / number(slow, "tokens_per_s");
    for (size_t i = 0; i < json_array_size(rungs); i++) {
        const json_t *r = json_array_get(rungs, i);
        assert_memory_equal(text(r, "differs"), "--", 2);
        if (!json_is_null(json_object_get(r, "note"))) continue; /* as text() requires */
        if (i) times *= number(r, "times_before");
        if (i) assert_true(strlen(text(r, "verdict")) > 3);
        double apart = times / number(r, "times_first");
        assert_true(apart > 0.999 && apart < 1.001);
        double tokens = number(r, "tokens_per_s") * number(r, "ms_median");
        assert_true(tokens > 31999 && tokens < 32001);
        /* The peak was measured at another time, so on a busy machine a rung may exceed it. Rungs
         * of one type have the same peak. */
        double of_token = number(r, "mfu_percent") / number(r, "tokens_per_s");
        assert_true(of_token > 0);
        if (!strcmp(text(r, "dtype"), text(slow, "dtype")))
            assert_float_equal(of_token / first, 1, 1e-3);
        assert_true(number(r, "memory_bytes") > 0 && number(r, "kernels_per_step") > 0);
    }
    /* Published numbers are at the rung of the same settings, those of TF32 too. */
    static const struct {
        const char *rung;
        double a100;
    } published[] = {{"primitive, slow", 0},       {"float32, slow", 16000}, {"tfloat32", 49000},
                     {"bfloat16", 54500},          {"full fusion", 126000},  {"flash", 170000},
                     {"padded vocabulary", 175000}};
    for (int i = 0; i < COUNT_OF(published); i++) {
        const json_t *r = json_array_get(rungs, (size_t)i);
        assert_string_equal(text(r, "rung"), published[i].rung);
        assert_true(json_number_value(json_object_get(r, "published_a100_tokens_per_s")) ==
                    published[i].a100);
    }
    json_decref(all);
    assert_int_equal(strobe(arena_printf(&arena, "%s --markdown --vocab=64", words)), 0);
    assert_memory_equal(program_stdout, "| rung ", 7);
    assert_non_null(strstr(program_stdout, "| the vocabulary, 64, is a multiple of 64 already |"));
    assert_non_null(strstr(program_stdout, "6 N + 12 L C T"));
}

static void test_ladder_refuses(void **state)
{
    (void)state;
    refuses("ladder", 2, "no configuration given");
    refuses("ladder configs/shakespeare_char_cpu.conf --flash=true", 2,
            "the ladder sets flash itself; leave that override out");
    refuses("ladder configs/shakespeare_char_cpu.conf dtype=float32", 2,
            "the ladder sets dtype itself; leave that override out");
    refuses("ladder configs/shakespeare_char_cpu.conf --steps=0", 2, "--steps must be 1 to");
    refuses_the_eighth_gpu("ladder configs/shakespeare_char_cpu.conf --threads=1");
    refuses("ladder configs/shakespeare_char_cpu.conf --csv --json", 2, "contradict each other");
}

static void test_help_of_the_parts(void **state)
{
    (void)state;
    assert_int_equal(strobe("bench kernels --help"), 0);
    assert_memory_equal(program_stdout, "usage: strobe bench kernels [CONFIG|RUN]", 40);
    assert_non_null(strstr(program_stdout, "\n  --op=NAME "));
    assert_int_equal(strobe("bench attention -h"), 0);
    assert_memory_equal(program_stdout, "usage: strobe bench attention [--T=", 35);
    assert_int_equal(strobe("help bench"), 0);
    assert_memory_equal(program_stdout,
                        "usage: strobe bench CONFIG|RUN ...|--suite=NAME|kernels|attention ", 66);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machine), /* first: the others use its record */
        cmocka_unit_test(test_bench_kernels),
        cmocka_unit_test(test_formats_of_bench_kernels),
        cmocka_unit_test(test_bench_refuses),
        cmocka_unit_test(test_bench_attention),
        cmocka_unit_test(test_grid_of_bench_attention),
        cmocka_unit_test(test_bench_attention_refuses),
        cmocka_unit_test(test_ladder),
        cmocka_unit_test(test_ladder_refuses),
        cmocka_unit_test(test_help_of_the_parts),
        cmocka_unit_test(test_the_record_is_used_or_replaced),
    };
    return cmocka_run_group_tests(tests, program_setup, program_teardown);
}
