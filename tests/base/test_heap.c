/* Out of memory: one sentence and exit code 1, never a signal.
 * test: release; sanitizers end a program whose malloc fails */
#include "base/heap.h"

#include "../support/cases.h"
#include "base/arena.h"
#include "base/str.h"
#include "base/terminal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <jansson.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* More than the address space. */
static const int64_t TOO_MUCH = INT64_C(1) << 50;
static char printed[4096];

/* Runs `part` in a child and returns its exit code; -1: a signal. `printed` is its stderr. */
static int code_of(void (*part)(void))
{
    int end[2], state;
    if (pipe(end) != 0) fail_msg("no pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(end[1], STDERR_FILENO);
        part();
        _exit(42);
    }
    close(end[1]);
    size_t n = 0;
    for (ssize_t got; (got = read(end[0], printed + n, sizeof printed - 1 - n)) > 0;)
        n += (size_t)got;
    printed[n] = '\0';
    close(end[0]);
    waitpid(child, &state, 0);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

static void huge_arena(void)
{
    struct arena a = {0};
    arena_alloc(&a, TOO_MUCH);
}

static void huge_text(void)
{
    struct str s = {0};
    str_append_bytes(&s, "", TOO_MUCH);
}

static void huge_with_advice(void)
{
    heap_reserve(1 << 20);
    heap_advise("the run is saved");
    (void)heap_zeroed(TOO_MUCH);
}

static void huge_aligned(void)
{
    (void)heap_aligned(64, INT64_MAX - 1);
}

static void huge_array(void)
{
    struct pair {
        int64_t a, b;
    };
    volatile int64_t n = (INT64_C(1) << 60) + 1; /* times 16 this is 16 in 64 bits */
    (void)HEAP_NEW(struct pair, n);
}

static void test_sizes_do_not_overflow(void **state)
{
    (void)state;
    assert_int_equal(code_of(huge_aligned), 1);
    assert_non_null(strstr(printed, "8192.0 PiB more cannot be allocated; "));
    assert_int_equal(code_of(huge_array), 1);
    assert_non_null(strstr(printed, "8192.0 PiB more cannot be allocated; "));
}

static void test_sentence(void **state)
{
    (void)state;
    static void (*const parts[])(void) = {huge_arena, huge_text, huge_with_advice};
    for (int i = 0; i < COUNT_OF(parts); i++) {
        assert_int_equal(code_of(parts[i]), 1);
        assert_non_null(strstr(printed, " PiB more cannot be allocated; "));
        assert_ptr_equal(strchr(printed, '\n'), printed + strlen(printed) - 1);
    }
    assert_non_null(strstr(printed, "; the run is saved\n"));
}

/* Lets the process have `more` bytes of address space. */
static void limit_to(rlim_t more)
{
    char text[64] = "";
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || !fgets(text, sizeof text, f)) _exit(43);
    fclose(f);
    rlim_t bytes = (rlim_t)strtoll(text, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE) + more;
    if (setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}) != 0) _exit(44);
}

enum { MIB = 1 << 20 };

static void use_reserve(void)
{
    int before = 0, after = 0;
    heap_reserve(8 * MIB);
    if (heap_low()) _exit(45);
    limit_to(16 * MIB);
    for (; !heap_low(); before++) memset(heap_alloc(MIB), 1, MIB);
    if (before < 8 || before > 17) _exit(46);
    for (; after < 6; after++) memset(heap_alloc(MIB), 1, MIB); /* a part of the reserve */
    heap_reserve(0);
    _exit(heap_low() ? 47 : 0);
}

static void exceed_reserve(void)
{
    heap_reserve(8 * MIB);
    limit_to(16 * MIB);
    for (;;) memset(heap_alloc(MIB), 1, MIB);
}

static void test_reserve(void **state)
{
    (void)state;
    assert_int_equal(code_of(use_reserve), 0);
    assert_int_equal(code_of(exceed_reserve), 1);
    assert_non_null(strstr(printed, "out of host memory: 1.0 MiB more"));
}

enum { ALLOCATORS = 4, RESERVE_MIB = 64 };
static pthread_barrier_t all_ready;

/* Allocates until the reserve is freed. */
static void *allocate_until_low(void *)
{
    free(heap_alloc(64)); /* the C library reserves addresses at the first request of a thread */
    pthread_barrier_wait(&all_ready);
    pthread_barrier_wait(&all_ready); /* the limit is set */
    while (!heap_low()) (void)heap_alloc(MIB);
    return NULL;
}

static void use_reserve_together(void)
{
    pthread_t thread[ALLOCATORS];
    mallopt(M_ARENA_MAX, 1); /* another arena of the C library could take the whole reserve */
    pthread_barrier_init(&all_ready, NULL, ALLOCATORS + 1);
    heap_reserve(RESERVE_MIB * (int64_t)MIB);
    for (int i = 0; i < ALLOCATORS; i++)
        if (pthread_create(&thread[i], NULL, allocate_until_low, NULL) != 0) _exit(45);
    pthread_barrier_wait(&all_ready);
    limit_to(8 * MIB);
    pthread_barrier_wait(&all_ready);
    for (int i = 0; i < ALLOCATORS; i++) pthread_join(thread[i], NULL);
    _exit(heap_low() ? 0 : 46);
}

/* A thread that finds no memory waits while another thread frees the reserve. */
static void test_threads_share_the_reserve(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        int code = code_of(use_reserve_together);
        if (code != 0) fail_msg("try %d: exit code %d: %s", i, code, printed);
    }
}

/* Takes all memory, in ever smaller blocks. */
static void take_all(void)
{
    void *volatile block; /* clang would remove calls of malloc whose result is unused */
    limit_to(0);
    for (size_t bytes = 1 << 16; bytes; bytes /= 2)
        while ((block = malloc(bytes))) {}
}

static void guard_terminal(void)
{
    int controller = posix_openpt(O_RDWR | O_NOCTTY);
    if (controller < 0 || grantpt(controller) != 0 || unlockpt(controller) != 0) _exit(45);
    int terminal = open(ptsname(controller), O_RDWR | O_NOCTTY);
    if (terminal < 0 || dup2(terminal, STDOUT_FILENO) < 0) _exit(46);
    take_all();
    terminal_guard_stdout();
    _exit(47);
}

static void test_terminal(void **state)
{
    (void)state;
    int code = code_of(guard_terminal);
    if (code == 45 || code == 46) SKIP("there are no pseudo-terminals");
    assert_int_equal(code, 1);
    assert_non_null(strstr(printed, "out of host memory: no more can be allocated; "));
}

/* A library's call of C++'s `new` uses the reserve, then prints the sentence; it throws nothing. */
static void call_new(void)
{
    void *(*new)(size_t);
    *(void **)&new = dlsym(RTLD_DEFAULT, "_Znwm");
    heap_guard_libraries();
    heap_reserve(8 * MIB);
    limit_to(MIB / 2);
    new (2 * MIB);
    if (!heap_low()) _exit(45);
    new (32 * MIB);
}

static void throw_error(void)
{
    void (*throw)(const char *);
    *(void **)&throw = dlsym(RTLD_DEFAULT, "_ZSt20__throw_length_errorPKc");
    heap_guard_libraries();
    throw("too long");
}

static void test_cplusplus(void **state)
{
    (void)state;
    if (!dlsym(RTLD_DEFAULT, "_Znwm")) SKIP("oneDNN is not installed, so there is no C++");
    assert_int_equal(code_of(call_new), 1);
    assert_non_null(strstr(printed, "out of host memory"));
    assert_int_equal(code_of(throw_error), 1);
    assert_non_null(strstr(printed, "a C++ library"));
}

/* Without the guard, json_string would return NULL, and the text would be lost without an error. */
static void fill_json(void)
{
    static char text[MIB + 1];
    memset(text, 'x', MIB);
    heap_guard_libraries();
    limit_to(16 * MIB);
    json_t *list = json_array();
    for (int i = 0; i < 32; i++)
        if (json_array_append_new(list, json_string(text)) != 0) _exit(45);
}

/* Without the guard, a valid text would be reported as invalid. */
static void read_json(void)
{
    static char text[MIB];
    memset(text, 'x', MIB);
    text[0] = '[', text[1] = text[MIB - 2] = '"', text[MIB - 1] = ']';
    heap_guard_libraries();
    limit_to(16 * MIB);
    for (int i = 0; i < 32; i++)
        if (!json_loadb(text, MIB, 0, NULL)) _exit(45);
}

static void test_json(void **state)
{
    (void)state;
    assert_int_equal(code_of(read_json), 1);
    assert_non_null(strstr(printed, "out of host memory"));
    assert_int_equal(code_of(fill_json), 1);
    assert_non_null(strstr(printed, "out of host memory: 1.0 MiB more"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentence), cmocka_unit_test(test_sizes_do_not_overflow),
        cmocka_unit_test(test_reserve),  cmocka_unit_test(test_threads_share_the_reserve),
        cmocka_unit_test(test_terminal), cmocka_unit_test(test_cplusplus),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
