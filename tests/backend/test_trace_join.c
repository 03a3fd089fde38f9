/* Matching of a GPU's activities to nodes: single calls, replays of captured graphs, missing
 * records; and short names. */
#include "../support/cases.h"
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#ifdef HAVE_CUDA
#include "backend/cuda/runtime/kernel_name.h"
#include "backend/cuda/runtime/trace_join.h"

static struct trace_record alone(uint32_t call, int64_t start)
{
    return (struct trace_record){ACTIVITY_KERNEL, false, call, "alone", start, start + 5, 0};
}

static struct trace_record replayed(uint32_t call, int64_t start)
{
    return (struct trace_record){ACTIVITY_KERNEL, true, call, "replayed", start, start + 5, 0};
}

/* The marks in order, with the number of the replay: "7 -1 1:8". */
static const char *marks(const struct trace *t, struct arena *a)
{
    char *text = arena_strdup(a, "");
    for (int64_t i = 0; i < t->activities; i++) {
        const struct activity *x = &t->activity[i];
        char *replay = x->replay < 0 ? arena_strdup(a, "") : arena_printf(a, "%d:", x->replay);
        text = arena_printf(a, "%s%s%s%d", text, i ? " " : "", replay, x->mark);
    }
    return text;
}

static void test_an_activity_has_the_mark_of_its_call(void **state)
{
    (void)state;
    struct arena a = {0};
    struct trace t;
    struct trace_record r[] = {alone(9, 300), alone(4, 100), alone(9, 310), alone(6, 200)};
    struct trace_call c[] = {
        {9, 2, NO_REPLAY}, {4, 7, NO_REPLAY}, {6, -1, NO_REPLAY}, {5, 3, NO_REPLAY}};
    r[1].kind = ACTIVITY_COPY, r[1].bytes = 64;
    trace_join(&(struct trace_input){.record = r, .records = 4, .call = c, .calls = 4}, &t, &a);
    assert_string_equal(marks(&t, &a), "7 -1 2 2");
    assert_int_equal(t.activity[0].start_ns, 100);
    assert_int_equal(t.activity[0].kind, ACTIVITY_COPY);
    assert_int_equal(t.activity[0].bytes, 64);
    assert_int_equal(t.unmatched, 0);
    assert_null(t.why);
    arena_release(&a);
}

/* Calls of the API in order, without those that another call of the thread made, and without the
 * versions of their names; threads are numbered by their first calls. */
static void test_calls_of_the_api(void **state)
{
    (void)state;
    struct arena a = {0};
    struct trace t;
    struct api_call in[] = {{"cuMemAlloc_v2", 77, 500, 600},
                            {"cuLaunchKernel", -5, 110, 190}, /* inside the next call */
                            {"cudaLaunchKernel_v7000", -5, 100, 200},
                            {"cuMemFree_v2", 77, 150, 160},
                            {"cuLaunchKernel", -5, 200, 210},
                            {"cuda_values", -5, 300, 310}};
    static const struct api_call want[] = {{"cudaLaunchKernel", 0, 100, 200},
                                           {"cuMemFree", 1, 150, 160},
                                           {"cuLaunchKernel", 0, 200, 210},
                                           {"cuda_values", 0, 300, 310},
                                           {"cuMemAlloc", 1, 500, 600}};
    trace_join(&(struct trace_input){.api = in, .apis = COUNT_OF(in)}, &t, &a);
    assert_int_equal(t.apis, COUNT_OF(want));
    for (int i = 0; i < COUNT_OF(want); i++) {
        assert_string_equal(t.api[i].name, want[i].name);
        assert_int_equal(t.api[i].thread, want[i].thread);
        assert_int_equal(t.api[i].start_ns, want[i].start_ns);
        assert_int_equal(t.api[i].end_ns, want[i].end_ns);
    }
    arena_release(&a);
}

static void test_a_call_without_a_record_is_reported(void **state)
{
    (void)state;
    struct arena a = {0};
    struct trace t;
    struct trace_record r[] = {alone(1, 100), alone(2, 200)};
    struct trace_call c[] = {{1, 5, NO_REPLAY}};
    trace_join(&(struct trace_input){.record = r, .records = 2, .call = c, .calls = 1}, &t, &a);
    assert_string_equal(marks(&t, &a), "5 -1");
    assert_int_equal(t.unmatched, 1);
    assert_non_null(
        strstr(t.why, "1 kernels and copies could not be attributed: there is no record"));
    arena_release(&a);
}

static const int first[] = {10, 11, 11}, second[] = {20};
static const struct trace_replay three[] = {{first, NULL, 3}, {second, NULL, 1}, {first, NULL, 3}};

/* All calls have the same number: numbers are not needed if no record is missing. */
static void test_replays_are_matched_in_order(void **state)
{
    (void)state;
    struct arena a = {0};
    struct trace t;
    struct trace_record r[] = {replayed(8, 50), replayed(8, 10), alone(1, 35),    replayed(8, 20),
                               replayed(8, 60), replayed(8, 30), replayed(8, 40), replayed(8, 70)};
    struct trace_call c[] = {{1, 5, NO_REPLAY}, {8, -1, 2}};
    trace_join(&(struct trace_input){r, 8, c, 2, three, 3, NULL, 0}, &t, &a);
    assert_string_equal(marks(&t, &a), "0:10 0:11 0:11 5 1:20 2:10 2:11 2:11");
    assert_int_equal(t.unmatched, 0);
    arena_release(&a);
}

/* Kernels of NCCL run beside the others, so their order among them says nothing. A replay that has
 * another number of them than were captured is not matched. */
static void test_collectives_run_beside(void **state)
{
    (void)state;
    struct arena a = {0};
    struct trace t;
    static const int mark[] = {10, 20, 11, 21};
    static const bool beside[] = {false, true, false, true};
    static const struct trace_replay two[] = {{mark, beside, 4}, {mark, beside, 4}};
    struct trace_record r[] = {replayed(8, 10), replayed(8, 20), replayed(8, 30), replayed(8, 40),
                               replayed(9, 50), replayed(9, 60), replayed(9, 70), replayed(9, 80)};
    struct trace_call c[] = {{8, -1, 0}, {9, -1, 1}};
    static const int nccl[] = {2, 3, 4, 6};
    for (int i = 0; i < COUNT_OF(nccl); i++)
        r[nccl[i]].name = "_Z24ncclDevKernel_AllReduce24ncclDevKernelArgsStorage";
    trace_join(&(struct trace_input){r, 8, c, 2, two, 2, NULL, 0}, &t, &a);
    assert_string_equal(marks(&t, &a), "0:10 0:11 0:20 0:21 1:20 1:10 1:21 1:11");
    assert_int_equal(t.unmatched, 0);
    r[6].name = "replayed";
    trace_join(&(struct trace_input){r, 8, c, 2, two, 2, NULL, 0}, &t, &a);
    assert_string_equal(marks(&t, &a), "0:10 0:11 0:20 0:21 1:-1 1:-1 1:-1 1:-1");
    assert_int_equal(t.unmatched, 4);
    assert_non_null(strstr(t.why, "those of NCCL were not recognized"));
    arena_release(&a);
}

/* A record of the first replay is missing; the other replays are matched. */
static void test_an_incomplete_replay_is_unmatched(void **state)
{
    (void)state;
    struct arena a = {0};
    struct trace t;
    struct trace_record r[] = {replayed(3, 10), replayed(3, 20), replayed(4, 30),
                               replayed(5, 40), replayed(5, 50), replayed(5, 60)};
    struct trace_call c[] = {{3, -1, 0}, {4, -1, 1}, {5, -1, 2}};
    trace_join(&(struct trace_input){r, 6, c, 3, three, 3, NULL, 0}, &t, &a);
    assert_string_equal(marks(&t, &a), "0:-1 0:-1 1:20 2:10 2:11 2:11");
    assert_true(t.activity[0].unmatched && t.activity[1].unmatched);
    assert_false(t.activity[2].unmatched || t.activity[5].unmatched);
    assert_int_equal(t.unmatched, 2);
    assert_non_null(strstr(t.why, "2 were traced where 3 were captured"));
    arena_release(&a);
}

/* A replay of an unknown graph whose call has no record stays unmatched. */
static void test_a_replay_without_its_call_is_unmatched(void **state)
{
    (void)state;
    struct arena a = {0};
    struct trace t;
    static const struct trace_replay late[] = {{NULL, NULL, 0}, {first, NULL, 3}};
    struct trace_record r[] = {replayed(3, 10), replayed(4, 20), replayed(4, 30), replayed(4, 40)};
    struct trace_call c[] = {{4, -1, 1}};
    trace_join(&(struct trace_input){r, 4, c, 1, late, 2, NULL, 0}, &t, &a);
    assert_string_equal(marks(&t, &a), "-1 1:10 1:11 1:11");
    assert_int_equal(t.unmatched, 1);
    arena_release(&a);
}

/* A record is missing, and two replays share a number or change their order: none is matched. */
static void test_ambiguous_replays_are_unmatched(void **state)
{
    (void)state;
    struct arena a = {0};
    struct trace t;
    struct trace_record r[] = {replayed(3, 10), replayed(3, 20), replayed(3, 30),
                               replayed(5, 40), replayed(5, 50), replayed(5, 60)};
    struct trace_call shared[] = {{3, -1, 0}, {5, -1, 2}}, turned[] = {{3, -1, 2}, {5, -1, 0}};
    for (int i = 0; i < 2; i++) {
        trace_join(&(struct trace_input){r, 6, i ? turned : shared, 2, three, 3, NULL, 0}, &t, &a);
        assert_string_equal(marks(&t, &a), "-1 -1 -1 -1 -1 -1");
        assert_int_equal(t.unmatched, 6);
        assert_non_null(strstr(t.why, "6 were traced where 7 were captured"));
    }
    arena_release(&a);
}

/* The replay of a graph captured before the trace; the library may or may not have recorded it. */
static void test_an_earlier_capture_is_unmatched(void **state)
{
    (void)state;
    struct arena a = {0};
    struct trace t;
    static const struct trace_replay two[] = {{NULL, NULL, 0}, {first, NULL, 3}};
    struct trace_record seen[] = {replayed(3, 10), replayed(3, 20), replayed(4, 30),
                                  replayed(4, 40), replayed(4, 50)};
    struct trace_record unseen[] = {replayed(4, 30), replayed(4, 40), replayed(4, 50)};
    struct trace_call c[] = {{3, -1, 0}, {4, -1, 1}};
    trace_join(&(struct trace_input){seen, 5, c, 2, two, 2, NULL, 0}, &t, &a);
    assert_string_equal(marks(&t, &a), "0:-1 0:-1 1:10 1:11 1:11");
    assert_int_equal(t.unmatched, 2);
    assert_non_null(strstr(t.why, "captured before the trace began"));
    trace_join(&(struct trace_input){unseen, 3, c, 2, two, 2, NULL, 0}, &t, &a);
    assert_string_equal(marks(&t, &a), "1:10 1:11 1:11");
    assert_int_equal(t.unmatched, 0);
    assert_non_null(strstr(t.why, "captured before the trace began"));
    arena_release(&a);
}

/* A memory fill and a kernel of the same name are different. */
static void test_a_name_belongs_to_its_kind(void **state)
{
    (void)state;
    struct arena a = {0};
    struct trace t;
    struct trace_record r[] = {alone(1, 100), alone(2, 200)};
    r[0].kind = ACTIVITY_FILL;
    r[0].name = r[1].name = "_Z4fillPfi";
    trace_join(&(struct trace_input){.record = r, .records = 2}, &t, &a);
    assert_string_equal(t.activity[0].short_name, "_Z4fillPfi");
    assert_string_equal(t.activity[1].short_name, "fill");
    arena_release(&a);
}

static void test_an_empty_trace(void **state)
{
    (void)state;
    struct arena a = {0};
    struct trace t;
    trace_join(&(struct trace_input){.records = 0}, &t, &a);
    assert_int_equal(t.activities, 0);
    assert_null(t.why);
    arena_release(&a);
}

static void test_names_are_short(void **state)
{
    (void)state;
    static const struct {
        const char *name, *wanted;
    } names[] = {
        {"attention_grad_keys", "attention_grad_keys"},
        {"_Z7softmaxPfi", "softmax"},
        {"_ZN8cublasLt19splitKreduce_kernelILi32ELi16EiffffLb1EEEvNS_18cublasSplitKParamsE",
         "cublasLt::splitKreduce_kernel"},
        {"_ZN7cutlass6KernelI21cutlass_80_wmma_16x16EEvNT_6ParamsE",
         "cutlass::Kernel<cutlass_80_wmma_16x16>"},
        {"_ZN2at6native52_GLOBAL__N__53b5b0e5_10_Normal_cu_b2d1a1e0_0123_456711unroll_loopEv",
         "at::native::unroll_loop"},
        {"_ZSt4swapIiEvRT_S1_", "std::swap"},
        {"_ZNK3one3twoEv", "one::two"},
        {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_cublas",
         "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tile.."},
        {"_Z", "_Z"},
        {"_ZN99x", "_ZN99x"},
        {"", ""},
    };
    char text[ACTIVITY_NAME];
    for (int i = 0; i < COUNT_OF(names); i++) {
        kernel_name_short(names[i].name, text);
        assert_string_equal(text, names[i].wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_activity_has_the_mark_of_its_call),
        cmocka_unit_test(test_calls_of_the_api),
        cmocka_unit_test(test_a_call_without_a_record_is_reported),
        cmocka_unit_test(test_replays_are_matched_in_order),
        cmocka_unit_test(test_collectives_run_beside),
        cmocka_unit_test(test_an_incomplete_replay_is_unmatched),
        cmocka_unit_test(test_a_replay_without_its_call_is_unmatched),
        cmocka_unit_test(test_ambiguous_replays_are_unmatched),
        cmocka_unit_test(test_an_earlier_capture_is_unmatched),
        cmocka_unit_test(test_a_name_belongs_to_its_kind),
        cmocka_unit_test(test_an_empty_trace),
        cmocka_unit_test(test_names_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    print_skipped("built without the CUDA toolkit's headers");
    return EXIT_SKIPPED;
}
#endif
