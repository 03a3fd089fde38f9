/* Allocations that fail; and what must be different in a process whose system calls are trapped. */
#include "preload.h"

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

/* ---- which allocations count: by the caller */

enum { RANGES = 16 };
static struct range {
    uintptr_t begin, end;
} own[RANGES], left_out[RANGES];
static int owns, lefts;

static void add_range(struct range *list, int *n, uintptr_t begin, uintptr_t bytes)
{
    if (*n < RANGES) list[(*n)++] = (struct range){begin, begin + bytes};
}

static int find_ranges(struct dl_phdr_info *info, size_t, void *)
{
    const char *name = info->dlpi_name;
    bool is_own = !*name || strstr(name, "/libc.so") || strstr(name, "/libc-");
    /* OpenMP's library ends the program when it has no memory; ld.so is not the program's. */
    bool is_left = strstr(name, "libgomp") || strstr(name, "libomp") || strstr(name, "/ld-") ||
                   strstr(name, "preload.so");
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
        if (is_own) add_range(own, &owns, info->dlpi_addr + p->p_vaddr, p->p_memsz);
        if (is_left) add_range(left_out, &lefts, info->dlpi_addr + p->p_vaddr, p->p_memsz);
    }
    return 0;
}

void memory_start(void)
{
    dl_iterate_phdr(find_ranges, NULL);
}

static bool is_in(const struct range *list, int n, uintptr_t at)
{
    for (int i = 0; i < n; i++)
        if (at >= list[i].begin && at < list[i].end) return true;
    return false;
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
            module[modules++] = (struct range){begin, begin + p->p_memsz};
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
    if (looking || !faults_active() || is_in(left_out, lefts, (uintptr_t)caller)) return false;
    bool is_own = is_in(own, owns, (uintptr_t)caller);
    return faults_decide(is_own ? FAULTS_MALLOC : FAULTS_LIBRARY, "") != 0;
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
