/* A library for LD_PRELOAD that counts system calls on files below a folder and lets the n-th of a
 * kind fail. A seccomp filter traps the calls that libc makes, also those inside of stdio, nftw and
 * opendir; the handler of SIGSYS fails them or makes them itself. The filter goes by the address of
 * the instruction, so calls of this library pass, and so does a program that is executed later: its
 * libc has another address, and it preloads this library again.
 *
 *   FAULTS_UNDER=DIR      the calls that count: those on paths below DIR (needed)
 *   FAULTS_CALL=NAME      the kind of call that fails (FAULTS_NAMES)
 *   FAULTS_AT=N           which one, from 1
 *   FAULTS_ERROR=NAME     EIO, ENOSPC, EACCES, ENOMEM, EMFILE, EINTR, or short
 *   FAULTS_ON=1           also all later ones
 *   FAULTS_SHARED=FILE    counts, struct faults_shared
 *   FAULTS_RECORD=FILE    the record of changes
 *   FAULTS_STACKS=FILE    hashes of the stacks of allocations (faults.h) */
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static struct faults_shared unshared, *shared = &unshared;
static char under[4096];
static size_t under_bytes;
static int wanted_call = -1, wanted_error;
static uint64_t wanted_at;
static bool wanted_on, active;

/* ---- system calls */

#if defined __x86_64__
long raw_call(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
static void arguments_of(const ucontext_t *u, long a[6])
{
    static const int at[6] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
    for (int i = 0; i < 6; i++) a[i] = (long)u->uc_mcontext.gregs[at[i]];
}
static void set_result(ucontext_t *u, long result)
{
    u->uc_mcontext.gregs[REG_RAX] = result;
}
#elif defined __aarch64__
long raw_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
                     x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e,
                     x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
static void arguments_of(const ucontext_t *u, long a[6])
{
    for (int i = 0; i < 6; i++) a[i] = (long)u->uc_mcontext.regs[i];
}
static void set_result(ucontext_t *u, long result)
{
    u->uc_mcontext.regs[0] = (unsigned long long)result;
}
#else
#error "the harness knows x86-64 and aarch64"
#endif

static const int trapped[] = {
    SYS_openat,     SYS_read,   SYS_pread64,   SYS_readv,   SYS_write,
    SYS_pwrite64,   SYS_writev, SYS_ftruncate, SYS_fsync,   SYS_fdatasync,
    SYS_renameat2,  SYS_linkat, SYS_unlinkat,  SYS_mkdirat, SYS_getdents64,
    SYS_newfstatat, SYS_fstat,  SYS_statx,     SYS_mmap,    SYS_faccessat,
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef SYS_open
    SYS_open,       SYS_creat,  SYS_stat,      SYS_lstat,   SYS_access,
    SYS_rename,     SYS_link,   SYS_unlink,    SYS_rmdir,   SYS_mkdir,
#endif
};

/* Calls without a folder, in the words of those with one. */
static long modern(long number, long a[6])
{
    [[maybe_unused]] long old[4] = {a[0], a[1], a[2], a[3]};
    switch (number) {
#ifdef SYS_open
    case SYS_creat:
        old[1] = O_CREAT | O_WRONLY | O_TRUNC, old[2] = a[1];
        [[fallthrough]];
    case SYS_open:
        a[0] = AT_FDCWD, a[1] = old[0], a[2] = old[1], a[3] = old[2];
        return SYS_openat;
    case SYS_stat:
        a[0] = AT_FDCWD, a[1] = old[0], a[2] = old[1], a[3] = 0;
        return SYS_newfstatat;
    case SYS_lstat:
        a[0] = AT_FDCWD, a[1] = old[0], a[2] = old[1], a[3] = AT_SYMLINK_NOFOLLOW;
        return SYS_newfstatat;
    case SYS_access:
        a[0] = AT_FDCWD, a[1] = old[0], a[2] = old[1];
        return SYS_faccessat;
    case SYS_rename:
        a[0] = a[2] = AT_FDCWD, a[1] = old[0], a[3] = old[1], a[4] = 0;
        return SYS_renameat2;
    case SYS_link:
        a[0] = a[2] = AT_FDCWD, a[1] = old[0], a[3] = old[1], a[4] = 0;
        return SYS_linkat;
    case SYS_unlink:
        a[0] = AT_FDCWD, a[1] = old[0], a[2] = 0;
        return SYS_unlinkat;
    case SYS_rmdir:
        a[0] = AT_FDCWD, a[1] = old[0], a[2] = AT_REMOVEDIR;
        return SYS_unlinkat;
    case SYS_mkdir:
        a[0] = AT_FDCWD, a[1] = old[0], a[2] = old[1];
        return SYS_mkdirat;
#endif
#ifdef SYS_renameat
    case SYS_renameat:
        a[4] = 0;
        return SYS_renameat2;
#endif
    default:
        return number;
    }
}

/* ---- paths */

static void join(char *ret, size_t *n, const char *text)
{
    while (*text && *n < 4095) ret[(*n)++] = *text++;
    ret[*n] = '\0';
}

static bool read_link(const char *link, char ret[4096])
{
    long n = raw_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)ret, 4095, 0, 0);
    ret[n > 0 ? n : 0] = '\0';
    return n > 0;
}

bool path_of_fd(int fd, char ret[4096])
{
    char link[64] = "/proc/self/fd/", digits[16];
    int n = 0;
    if (fd < 0) return false;
    do digits[n++] = (char)('0' + fd % 10);
    while ((fd /= 10));
    char *end = link + strlen(link);
    while (n) *end++ = digits[--n];
    *end = '\0';
    return read_link(link, ret);
}

bool path_full(int fd, const char *path, char ret[4096])
{
    size_t n = 0;
    if (!path) return false;
    if (path[0] == '/') {
        join(ret, &n, path);
        return true;
    }
    if (!(fd == AT_FDCWD ? read_link("/proc/self/cwd", ret) : path_of_fd(fd, ret))) return false;
    n = strlen(ret);
    if (path[0]) {
        join(ret, &n, "/");
        join(ret, &n, path);
    }
    return true;
}

bool path_is_watched(const char *path)
{
    return under_bytes && strncmp(path, under, under_bytes) == 0 &&
           (path[under_bytes] == '/' || path[under_bytes] == '\0');
}

/* ---- deciding */

bool faults_active(void)
{
    return active;
}

int faults_decide(enum faults_call call, const char *where)
{
    uint64_t n = ++shared->count[call];
    if (call == FAULTS_MALLOC) stacks_add(n);
    if ((int)call != wanted_call || (wanted_on ? n < wanted_at : n != wanted_at)) return 0;
    shared->hits++;
    size_t end = 0, skip = path_is_watched(where) ? under_bytes : 0;
    for (const char *s = where + skip; *s && end < sizeof shared->where - 1;)
        shared->where[end++] = *s++;
    shared->where[end] = '\0';
    return wanted_error;
}

/* The kind of a call and its path; -1: not one of ours. */
static int kind_of(long number, const long a[6], char path[4096])
{
    int fd = (int)a[0];
    switch (number) {
    case SYS_openat: {
        bool folder = (a[2] & O_DIRECTORY) && (a[2] & O_TMPFILE) != O_TMPFILE;
        return path_full(fd, (char *)a[1], path) ? folder ? FAULTS_OPENDIR : FAULTS_OPEN : -1;
    }
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
        return path_of_fd(fd, path) ? FAULTS_READ : -1;
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_ftruncate:
        return path_of_fd(fd, path) ? FAULTS_WRITE : -1;
    case SYS_fsync:
    case SYS_fdatasync:
        return path_of_fd(fd, path) ? FAULTS_SYNC : -1;
    case SYS_getdents64:
        return path_of_fd(fd, path) ? FAULTS_READDIR : -1;
    case SYS_fstat:
        return path_of_fd(fd, path) ? FAULTS_STAT : -1;
    case SYS_newfstatat:
    case SYS_statx:
    case SYS_faccessat:
#ifdef SYS_faccessat2
    case SYS_faccessat2:
#endif
        return path_full(fd, a[1] ? (char *)a[1] : "", path) ? FAULTS_STAT : -1;
    case SYS_renameat2:
        return path_full(fd, (char *)a[1], path) ? FAULTS_RENAME : -1;
    case SYS_linkat:
        return path_full((int)a[2], (char *)a[3], path) ? FAULTS_LINK : -1;
    case SYS_unlinkat:
        return path_full(fd, (char *)a[1], path) ? FAULTS_UNLINK : -1;
    case SYS_mkdirat:
        return path_full(fd, (char *)a[1], path) ? FAULTS_MKDIR : -1;
    case SYS_mmap:
        return !(a[3] & MAP_ANONYMOUS) && path_of_fd((int)a[4], path) ? FAULTS_MMAP : -1;
    default:
        return -1;
    }
}

static bool can_be_short(long number)
{
    return number == SYS_read || number == SYS_pread64 || number == SYS_write ||
           number == SYS_pwrite64;
}

/* What a full disk refuses. Names and bytes that exist may be read, written over, and removed. */
static bool needs_space(long number, const long a[6])
{
    struct stat info;
    switch (number) {
    case SYS_openat:
        return (a[2] & O_TMPFILE) == O_TMPFILE ||
               ((a[2] & O_CREAT) && raw_call(SYS_newfstatat, a[0], a[1], (long)&info, 0, 0, 0) < 0);
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_mkdirat:
    case SYS_linkat:
    case SYS_renameat2:
        return true;
    default:
        return false;
    }
}

/* A second count of the same call; one of them decides. */
static int also(int error, enum faults_call call, const char *path)
{
    int other = faults_decide(call, path);
    return other ? other : error;
}

static long handle(long number, long a[6])
{
    char path[4096];
    int kind = active ? kind_of(number, a, path) : -1;
    if (kind < 0 || !path_is_watched(path))
        return raw_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    int error = faults_decide((enum faults_call)kind, path);
    if (error <= 0 && needs_space(number, a)) error = also(error, FAULTS_FULL, path);
    if (error <= 0) error = also(error, FAULTS_DEAD, path);
    if (error > 0) return -error;
    if (error == FAULTS_SHORT && can_be_short(number) && a[2] > 1) a[2] /= 2;
    if (record_is_on()) return record_call(number, a);
    return raw_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    int kept = errno;
    long a[6];
    arguments_of(context, a);
    long number = modern(info->si_syscall, a);
    set_result(context, handle(number, a));
    errno = kept;
}

/* ---- the filter */

static uintptr_t libc_begin, libc_end;

static int find_libc(struct dl_phdr_info *info, size_t, void *)
{
    if (!strstr(info->dlpi_name, "/libc.so") && !strstr(info->dlpi_name, "/libc-")) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X)) continue;
        libc_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        libc_end = libc_begin + info->dlpi_phdr[i].p_memsz;
    }
    return 1;
}

static void stop(const char *why)
{
    fprintf(stderr, "faults: %s: %s\n", why, strerror(errno));
    _exit(99);
}

/* Addresses are compared by their upper and lower half; libc's text lies within one upper half, or
 * this process gives up (once in some thousand starts) and the driver tries again. */
static void trap_calls(void)
{
    enum { CALLS = sizeof trapped / sizeof *trapped, MOST = CALLS + 16 };
    struct sock_filter f[MOST];
    int n = 0;
    dl_iterate_phdr(find_libc, NULL);
    if (!libc_begin) stop("the text of libc was not found");
    if (libc_begin >> 32 != libc_end >> 32) _exit(98);
    uint32_t ip = offsetof(struct seccomp_data, instruction_pointer);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ip + 4);
    f[n++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(libc_begin >> 32), 1, 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ip);
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)libc_begin, 1, 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (uint32_t)libc_end, 0, 1);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < CALLS; i++)
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)trapped[i],
                                              (uint8_t)(CALLS - i), 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    struct sock_fprog program = {(unsigned short)n, f};
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (sigaction(SIGSYS, &action, NULL)) stop("sigaction");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) stop("no_new_privs");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) stop("seccomp");
}

/* ---- the start */

static int error_named(const char *name)
{
    static const struct {
        const char *name;
        int error;
    } errors[] = {{"EIO", EIO},           {"ENOSPC", ENOSPC}, {"EACCES", EACCES},
                  {"ENOMEM", ENOMEM},     {"EMFILE", EMFILE}, {"EINTR", EINTR},
                  {"short", FAULTS_SHORT}};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (name && !strcmp(name, errors[i].name)) return errors[i].error;
    return EIO;
}

static void read_environment(void)
{
    static const char *const names[] = FAULTS_NAMES;
    const char *dir = getenv("FAULTS_UNDER"), *call = getenv("FAULTS_CALL"),
               *at = getenv("FAULTS_AT"), *file = getenv("FAULTS_SHARED"),
               *record = getenv("FAULTS_RECORD"), *stacks = getenv("FAULTS_STACKS");
    if (dir) snprintf(under, sizeof under, "%s", dir);
    under_bytes = strlen(under);
    for (int i = 0; i < FAULTS_CALLS; i++)
        if (call && !strcmp(call, names[i])) wanted_call = i;
    wanted_at = at ? strtoull(at, NULL, 10) : 1;
    wanted_error = error_named(getenv("FAULTS_ERROR"));
    wanted_on = getenv("FAULTS_ON") != NULL;
    if (file) {
        int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || ftruncate(fd, sizeof *shared)) stop(file);
        void *map = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED) stop(file);
        shared = map;
        close(fd);
    }
    if (record) record_open(record);
    if (stacks && !stacks_open(stacks)) stop(stacks);
}

static int (*real_main)(int, char **, char **);

static int main_watched(int argc, char **argv, char **environment)
{
    if (under_bytes) active = true;
    return real_main(argc, argv, environment);
}

int __libc_start_main(int (*main_)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
                      void *stack_end);
int __libc_start_main(int (*main_)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
                      void *stack_end)
{
    int (*start)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                 void (*)(void), void *) = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = main_;
    read_environment();
    memory_start();
    if (under_bytes) trap_calls();
    return start(main_watched, argc, argv, init, fini, rtld_fini, stack_end);
}
