#include "base/heap.h"

#include "base/checked.h"
#include "base/str.h"

#include <dlfcn.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *advised; /* the end of the out-of-memory sentence */

/* A thread that finds no memory waits here while another thread frees the reserve. */
static pthread_mutex_t giving_up = PTHREAD_MUTEX_INITIALIZER;
static void *reserve;                     /* NULL: none, or freed already */
static bool low;                          /* the reserve was freed */
static int64_t reserves;                  /* how many reserves were freed so far */
static _Thread_local int64_t asked_after; /* `reserves` when this thread last repeated a request */

/* Frees the present reserve, if any, and sets the next one. */
static void replace_reserve(void *block)
{
    pthread_mutex_lock(&giving_up);
    free(reserve);
    reserve = block;
    __atomic_store_n(&low, false, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&giving_up);
}

void heap_advise(const char *advice)
{
    __atomic_store_n(&advised, advice, __ATOMIC_SEQ_CST);
}

void heap_reserve(int64_t bytes)
{
    replace_reserve(NULL);
    if (bytes <= 0) return;
    void *block = heap_alloc(bytes);
    memset(block, 1, (size_t)bytes); /* the system provides pages only when they are touched */
    replace_reserve(block);
}

bool heap_low(void)
{
    return __atomic_load_n(&low, __ATOMIC_RELAXED);
}

/* Frees the reserve. True if the caller should repeat its request; another thread may have freed
 * the reserve already, so each thread repeats once per reserve. */
static bool give_up_reserve(void)
{
    pthread_mutex_lock(&giving_up);
    if (reserve) {
        __atomic_store_n(&low, true, __ATOMIC_SEQ_CST); /* before other threads take its memory */
        free(reserve);
        reserve = NULL;
        reserves++;
    }
    bool again = low && asked_after < reserves;
    asked_after = reserves;
    pthread_mutex_unlock(&giving_up);
    return again;
}

/* Formats without allocating, and writes without the buffers of a stream. */
static _Noreturn void end(const char *sentence)
{
    char line[1024];
    int n = snprintf(line, sizeof line, "strobe: %s%s%s\n", sentence, advised ? "; " : "",
                     advised ? advised : "");
    if (n >= (int)sizeof line) n = (int)sizeof line - 1;
    (void)!write(STDERR_FILENO, line, (size_t)n);
    _exit(1);
}

void heap_end(int64_t bytes)
{
    char sentence[256], size[32];
    snprintf(sentence, sizeof sentence,
             "out of host memory: %s%s be allocated; close other programs, raise the "
             "limit of this one (ulimit -v), or use a smaller batch_size or model",
             bytes > 0 ? str_bytes(size, (double)bytes) : "no more",
             bytes > 0 ? " more cannot" : " can");
    end(sentence);
}

void *heap_alloc(int64_t bytes)
{
    for (;;) {
        void *block = bytes < 0 ? NULL : malloc(bytes ? (size_t)bytes : 1);
        if (block) return block;
        if (!give_up_reserve()) heap_end(bytes);
    }
}

void *heap_zeroed(int64_t bytes)
{
    for (;;) {
        void *block = bytes < 0 ? NULL : calloc(1, bytes ? (size_t)bytes : 1);
        if (block) return block;
        if (!give_up_reserve()) heap_end(bytes);
    }
}

void *heap_aligned(int64_t alignment, int64_t bytes)
{
    int64_t rounded = bytes < 0 ? -1 : size_round_up(bytes ? bytes : 1, alignment);
    for (;;) {
        void *block = rounded < 0 ? NULL : aligned_alloc((size_t)alignment, (size_t)rounded);
        if (block) return block;
        if (!give_up_reserve()) heap_end(bytes);
    }
}

void *heap_resize(void *block, int64_t bytes)
{
    for (;;) {
        void *wider = bytes < 0 ? NULL : realloc(block, bytes ? (size_t)bytes : 1);
        if (wider) return wider;
        if (!give_up_reserve()) heap_end(bytes);
    }
}

char *heap_strdup(const char *text)
{
    int64_t n = (int64_t)strlen(text) + 1;
    return memcpy(heap_alloc(n), text, (size_t)n);
}

/* --- libraries -------------------------------------------------------------------------------- */

static void *alloc_for_json(size_t bytes)
{
    return heap_alloc((int64_t)bytes);
}

static void *alloc_for_crypto(size_t bytes, const char *, int)
{
    return heap_alloc((int64_t)bytes);
}

static void *resize_for_crypto(void *block, size_t bytes, const char *, int)
{
    if (bytes) return heap_resize(block, (int64_t)bytes);
    free(block);
    return NULL;
}

static void free_for_crypto(void *block, const char *, int)
{
    free(block);
}

/* operator new calls this when it finds no memory, and tries again when this returns. */
static void no_memory_for_new(void)
{
    if (!give_up_reserve()) heap_end(0);
}

static void uncaught(void)
{
    end("a C++ library, probably oneDNN, failed with an exception, as it does when the system "
        "refuses it memory or a thread; see `ulimit -a`");
}

/* Looks the functions of the C++ standard library up by their mangled names: this program has no
 * C++, and the library is present only if oneDNN is. */
static void guard_cplusplus(void)
{
    typedef void handler(void);
    typedef handler *set_handler(handler *);
    set_handler *set_new, *set_terminate;
    *(void **)&set_new = dlsym(RTLD_DEFAULT, "_ZSt15set_new_handlerPFvvE");
    *(void **)&set_terminate = dlsym(RTLD_DEFAULT, "_ZSt13set_terminatePFvvE");
    if (set_new) set_new(no_memory_for_new);
    if (set_terminate) set_terminate(uncaught);
}

void heap_guard_libraries(void)
{
    json_set_alloc_funcs(alloc_for_json, free);
    (void)CRYPTO_set_mem_functions(alloc_for_crypto, resize_for_crypto, free_for_crypto);
    /* Its cleanup at exit allocates: without memory, that would add a second error message. */
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
    guard_cplusplus();
}
