/* The record of what changes the folder: each call is made and, if it succeeded, appended. */
#include "preload.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

static int record_fd = -1;
static atomic_flag busy = ATOMIC_FLAG_INIT; /* keeps the order of several threads */

bool record_is_on(void)
{
    return record_fd >= 0;
}

/* A number that the program does not count on, so that it survives a program that closes files. */
void record_open(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    record_fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 900);
    if (record_fd < 0) _exit(99);
    close(fd);
}

static uint64_t inode_of_fd(int fd)
{
    struct stat info;
    return raw_call(SYS_fstat, fd, (long)&info, 0, 0, 0, 0) ? 0 : (uint64_t)info.st_ino;
}

static uint64_t inode_at(int fd, const char *path, int flags)
{
    struct stat info;
    return raw_call(SYS_newfstatat, fd, (long)path, (long)&info, flags, 0, 0)
               ? 0
               : (uint64_t)info.st_ino;
}

/* The folder of a path, and the name in it. */
static uint64_t parent_of(int fd, const char *path, char name[96])
{
    char full[4096];
    if (!path_full(fd, path, full)) return 0;
    size_t n = strlen(full);
    while (n > 1 && full[n - 1] == '/') full[--n] = '\0';
    char *slash = strrchr(full, '/');
    if (!slash) return 0;
    strncpy(name, slash + 1, 95);
    *slash = '\0';
    return inode_at(AT_FDCWD, *full ? full : "/", 0);
}

static void append(const struct faults_change_record *r, const void *data)
{
    struct iovec part[2] = {{(void *)r, sizeof *r}, {(void *)data, data ? (size_t)r->bytes : 0}};
    raw_call(SYS_writev, record_fd, (long)part, 2, 0, 0, 0);
}

static long open_recorded(const long a[6])
{
    struct faults_change_record r = {};
    const char *path = (const char *)a[1];
    bool nameless = (a[2] & O_TMPFILE) == O_TMPFILE;
    bool existed = !nameless && inode_at((int)a[0], path, 0) != 0;
    long fd = raw_call(SYS_openat, a[0], a[1], a[2], a[3], 0, 0);
    if (fd < 0) return fd;
    r.ino = inode_of_fd((int)fd);
    if (nameless || (!existed && (a[2] & O_CREAT))) {
        r.change = CHANGE_CREATE;
        if (!nameless) r.dir = parent_of((int)a[0], path, r.name);
        append(&r, NULL);
    } else if (a[2] & O_TRUNC) {
        r.change = CHANGE_TRUNCATE;
        append(&r, NULL);
    }
    return fd;
}

static long write_recorded(long number, const long a[6])
{
    long n = raw_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (n <= 0) return n;
    struct faults_change_record r = {.change = CHANGE_WRITE, .bytes = n};
    r.ino = inode_of_fd((int)a[0]);
    r.at = number == SYS_pwrite64 ? a[3] : raw_call(SYS_lseek, a[0], 0, SEEK_CUR, 0, 0, 0) - n;
    if (number != SYS_writev) {
        append(&r, (const void *)a[1]);
        return n;
    }
    const struct iovec *part = (const struct iovec *)a[1];
    for (long i = 0, left = n; i < a[2] && left > 0; i++) {
        r.bytes = left < (long)part[i].iov_len ? left : (long)part[i].iov_len;
        if (r.bytes) append(&r, part[i].iov_base);
        left -= r.bytes;
        r.at += r.bytes;
    }
    return n;
}

static long rename_recorded(const long a[6])
{
    struct faults_change_record r = {.change =
                                         a[4] & RENAME_EXCHANGE ? CHANGE_EXCHANGE : CHANGE_RENAME};
    r.dir = parent_of((int)a[0], (const char *)a[1], r.name);
    r.dir2 = parent_of((int)a[2], (const char *)a[3], r.name2);
    r.ino = inode_at((int)a[0], (const char *)a[1], AT_SYMLINK_NOFOLLOW);
    long result = raw_call(SYS_renameat2, a[0], a[1], a[2], a[3], a[4], 0);
    if (result == 0) append(&r, NULL);
    return result;
}

/* The source may be a file without a name, given by AT_EMPTY_PATH or below /proc/self/fd. */
static long link_recorded(const long a[6])
{
    struct faults_change_record r = {.change = CHANGE_LINK};
    long result = raw_call(SYS_linkat, a[0], a[1], a[2], a[3], a[4], 0);
    if (result != 0) return result;
    r.dir = parent_of((int)a[2], (const char *)a[3], r.name);
    r.ino = inode_at((int)a[2], (const char *)a[3], AT_SYMLINK_NOFOLLOW);
    append(&r, NULL);
    return 0;
}

static long change_recorded(long number, const long a[6])
{
    struct faults_change_record r = {};
    switch (number) {
    case SYS_openat:
        return open_recorded(a);
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
        return write_recorded(number, a);
    case SYS_renameat2:
        return rename_recorded(a);
    case SYS_linkat:
        return link_recorded(a);
    case SYS_unlinkat:
    case SYS_mkdirat:
        r.dir = parent_of((int)a[0], (const char *)a[1], r.name);
        break;
    case SYS_ftruncate:
        r.ino = inode_of_fd((int)a[0]), r.at = a[1];
        break;
    case SYS_fsync:
    case SYS_fdatasync:
        r.ino = inode_of_fd((int)a[0]);
        break;
    default:
        return raw_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    long result = raw_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (result != 0) return result;
    r.change = number == SYS_unlinkat    ? CHANGE_UNLINK
               : number == SYS_mkdirat   ? CHANGE_MKDIR
               : number == SYS_ftruncate ? CHANGE_TRUNCATE
                                         : CHANGE_SYNC;
    if (r.change == CHANGE_MKDIR) r.ino = inode_at((int)a[0], (const char *)a[1], 0);
    append(&r, NULL);
    return 0;
}

long record_call(long number, const long a[6])
{
    while (atomic_flag_test_and_set(&busy)) raw_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    long result = change_recorded(number, a);
    atomic_flag_clear(&busy);
    return result;
}
