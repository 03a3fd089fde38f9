/* What the preloaded library and the driver share: the kinds of calls, their counts, and the record
 * of writes. */
#pragma once
#include <stdint.h>

enum faults_call {
    FAULTS_OPEN,    /* open, openat, creat, of files */
    FAULTS_OPENDIR, /* the same with O_DIRECTORY */
    FAULTS_READ,    /* read, pread, readv */
    FAULTS_WRITE,   /* write, pwrite, writev, ftruncate */
    FAULTS_SYNC,    /* fsync, fdatasync */
    FAULTS_RENAME,
    FAULTS_LINK,
    FAULTS_STAT, /* stat, lstat, fstat, statx, access */
    FAULTS_READDIR,
    FAULTS_MMAP, /* of files */
    FAULTS_UNLINK,
    FAULTS_MKDIR,
    FAULTS_MALLOC, /* malloc, calloc, realloc, aligned_alloc, but for OpenMP's and oneDNN's */
    FAULTS_ONEDNN, /* the same within oneDNN, which crashes: counted, never made to fail */
    FAULTS_FULL,   /* what needs space: open that creates, write, mkdir, link, rename */
    FAULTS_DEAD,   /* every call on files */
    FAULTS_CALLS
};

#define FAULTS_NAMES                                                                             \
    {                                                                                            \
        "open", "opendir", "read", "write", "sync", "rename", "link", "stat", "readdir", "mmap", \
            "unlink", "mkdir", "malloc", "onednn", "full", "dead"                                \
    }

enum { FAULTS_SHORT = -1 }; /* in place of an errno: half of the bytes */

/* A file that FAULTS_STACKS names has for each call of FAULTS_MALLOC a hash of its stack. */
enum { FAULTS_STACKS_ROOM = 1 << 18 };

/* A file that both map; FAULTS_SHARED names it. It outlives a process that is killed. */
struct faults_shared {
    _Atomic uint64_t count[FAULTS_CALLS]; /* calls so far, of all processes that share it */
    _Atomic uint64_t hits;                /* calls that failed on request */
    char where[256];                      /* path of the last of them; "" for memory */
};

/* The record (FAULTS_RECORD): what changed the folder, in order. Files are named by inode, so that
 * renamed folders need no care; names are those in the folder `dir`. A write is followed by its
 * bytes. */
enum faults_change {
    CHANGE_CREATE, /* file `ino` as `name` in `dir`; name "": without a name (O_TMPFILE) */
    CHANGE_MKDIR,
    CHANGE_WRITE, /* `bytes` at `at` */
    CHANGE_TRUNCATE,
    CHANGE_SYNC,   /* file or folder `ino` */
    CHANGE_RENAME, /* `name` of `dir` to `name2` of `dir2` */
    CHANGE_EXCHANGE,
    CHANGE_LINK, /* `ino` as `name` in `dir` */
    CHANGE_UNLINK
};

struct faults_change_record {
    uint32_t change, unused;
    uint64_t ino, dir, dir2;
    int64_t at, bytes;
    char name[96], name2[96];
};
