/* Allocations that fail; and what must be different in a process whose system calls are trapped. */
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- whose an allocation is: by the library that calls, and by what runs */

enum { RANGES = 16 };
static struct range {
    uintptr_t begin, end;
    int call; /* enum faults_call; -1: does not count */
} range[RANGES];
static int ranges;

/* All libraries survive a failure but these. */
static int call_of_library(const char *name)
{
    static const struct {
        const char *part;
        int call;
    } exceptions[] = {
        {"/libdnnl", FAULTS_ONEDNN},
        {"/libstdc++", FAULTS_ONEDNN}, /* nothing else is in C++ */
        {"libgomp", -1},
        {"libomp", -1}, /* end the program */
        {"/ld-", -1},
        {"preload.so", -1},
    };
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (strstr(name, exceptions[i].part)) return exceptions[i].call;
    return FAULTS_MALLOC;
}

static int find_ranges(struct dl_phdr_info *info, size_t, void *)
{
    int call = call_of_library(info->dlpi_name);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || call == FAULTS_MALLOC) continue;
        uintptr_t begin = info->dlpi_addr + p->p_vaddr;
        if (ranges < RANGES) range[ranges++] = (struct range){begin, begin + p->p_memsz, call};
    }
    return 0;
}

void memory_start(void)
{
    dl_iterate_phdr(find_ranges, NULL);
}

/* oneDNN also allocates through libc, as when it reads /proc/cpuinfo. So each of its functions that
 * the program calls (ONEDNN_FUNCTIONS, made from the program's symbols) has a wrapper here. They
 * take integers and pointers, at most eight: that many are passed on, whatever they mean. */
static _Thread_local bool in_onednn;

typedef long onednn_function(long, long, long, long, long, long, long, long);

static long call_onednn(const char *name, const long a[8])
{
    onednn_function *next;
    bool was_in = in_onednn;
    *(void **)&next = dlsym(RTLD_NEXT, name);
    in_onednn = true;
    long result = next(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
    in_onednn = was_in;
    return result;
}

#define F(name)                                                               \
    onednn_function name;                                                     \
    long name(long a, long b, long c, long d, long e, long f, long g, long h) \
    {                                                                         \
        return call_onednn(#name, (long[]){a, b, c, d, e, f, g, h});          \
    }
ONEDNN_FUNCTIONS(F)
#undef F

/* Returns an enum faults_call, or -1. */
static int call_of(uintptr_t caller)
{
    for (int i = 0; i < ranges; i++)
        if (caller >= range[i].begin && caller < range[i].end) return range[i].call;
    return in_onednn ? FAULTS_ONEDNN : FAULTS_MALLOC;
}

/* ---- where they come from */

static uint64_t *stacks;
enum { MODULES = 64 };
static struct range module[MODULES]; /* libraries and the program lie elsewhere each time */
static int modules;

static int find_modules(struct dl_phdr_info *info, size_t, void *)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && modules < MODULES) {
            uintptr_t begin = info->dlpi_addr + p->p_vaddr;
            module[modules++] = (struct range){begin, begin + p->p_memsz, -1};
        }
    }
    return 0;
}

/* An address as the number of its module and the place in it. */
static uint64_t place_of(uintptr_t at)
{
    for (int i = 0; i < modules; i++)
        if (at >= module[i].begin && at < module[i].end)
            return (uint64_t)i << 48 | (at - module[i].begin);
    return 0;
}

static _Thread_local bool looking; /* at a stack: what this allocates does not count */

bool stacks_open(const char *path)
{
    void *first[4];
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    size_t bytes = FAULTS_STACKS_ROOM * sizeof *stacks;
    if (fd < 0 || ftruncate(fd, (off_t)bytes)) return false;
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED) return false;
    backtrace(first, 4); /* loads the library that it needs */
    dl_iterate_phdr(find_modules, NULL);
    stacks = map;
    return true;
}

void stacks_add(uint64_t n)
{
    enum { DEPTH = 64 };
    void *at[DEPTH];
    uint64_t hash = 14695981039346656037u;
    if (!stacks || n == 0 || n > FAULTS_STACKS_ROOM) return;
    looking = true;
    int depth = backtrace(at, DEPTH);
    looking = false;
    for (int i = 0; i < depth; i++) hash = (hash ^ place_of((uintptr_t)at[i])) * 1099511628211u;
    stacks[n - 1] = hash;
}

static bool fails(void *caller)
{
    if (looking || !faults_active()) return false;
    int call = call_of((uintptr_t)caller);
    return call >= 0 && faults_decide((enum faults_call)call, "") != 0;
}

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static void *none(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t bytes)
{
    return fails(__builtin_return_address(0)) ? none() : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? none() : __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? none() : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? none() : __libc_memalign(alignment, bytes);
}

void *memalign(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? none() : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **ret, size_t alignment, size_t bytes)
{
    if (fails(__builtin_return_address(0))) return ENOMEM;
    void *p = __libc_memalign(alignment, bytes);
    if (!p) return ENOMEM;
    *ret = p;
    return 0;
}

/* ---- a thread that blocks SIGSYS would be killed at its first trapped call */

static int set_mask(int how, const sigset_t *set, sigset_t *ret_old)
{
    sigset_t without;
    if (set && how != SIG_UNBLOCK) {
        without = *set;
        sigdelset(&without, SIGSYS);
        set = &without;
    }
    int kept = errno, error = sigprocmask(how, set, ret_old) ? errno : 0;
    errno = kept;
    return error;
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *ret_old)
{
    return set_mask(how, set, ret_old);
}

/* ---- posix_spawn blocks all signals in the child, which opens files: fork and exec instead */

enum { ACTIONS = 8 };
static struct action {
    const void *list;
    int fd, from, flags;
    char path[64];
} action[ACTIONS];
static int actions;

int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *list, int fd, const char *path,
                                     int flags, mode_t)
{
    if (actions == ACTIONS || strlen(path) >= sizeof action->path) return ENOMEM;
    action[actions] = (struct action){.list = list, .fd = fd, .from = -1, .flags = flags};
    strcpy(action[actions++].path, path);
    return 0;
}

int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *list, int from, int fd)
{
    if (actions == ACTIONS) return ENOMEM;
    action[actions++] = (struct action){.list = list, .fd = fd, .from = from};
    return 0;
}

int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t *list)
{
    int kept = 0;
    for (int i = 0; i < actions; i++)
        if (action[i].list != list) action[kept++] = action[i];
    actions = kept;
    return 0;
}

int posix_spawn(pid_t *ret, const char *path, const posix_spawn_file_actions_t *list,
                const posix_spawnattr_t *, char *const *words, char *const *environment)
{
    pid_t child = fork();
    if (child < 0) return errno;
    if (child > 0) {
        *ret = child;
        return 0;
    }
    for (int i = 0; i < actions; i++) {
        if (action[i].list != list) continue;
        int from = action[i].from >= 0 ? action[i].from : open(action[i].path, action[i].flags);
        if (from < 0 || dup2(from, action[i].fd) < 0) _exit(127);
    }
    execve(path, words, environment);
    _exit(127);
}
