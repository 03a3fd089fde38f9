#include "base/turn.h"

#include "base/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

/* A signal may arrive between the check of its flag and the wait, so the flag is polled. */
enum { LOOK_MS = 50 };

static bool readable(int fd, int wait_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, wait_ms) > 0;
}

/* SOCK_SEQPACKET delivers each message whole. */
static bool receive(int fd, void *message, size_t bytes)
{
    return recv(fd, message, bytes, MSG_DONTWAIT) == (ssize_t)bytes;
}

enum status turn_wait(int fd, const struct turn_report *report, struct turn_grant *ret)
{
    if (send(fd, report, sizeof *report, MSG_NOSIGNAL) != (ssize_t)sizeof *report)
        return fail(ST_INTERRUPTED, "the process that gives turns (--turns=%d) does not answer: %s",
                    fd, strerror(errno));
    while (!interrupt_noted()) {
        if (!readable(fd, LOOK_MS)) continue;
        if (receive(fd, ret, sizeof *ret)) return ST_OK;
        return fail(ST_INTERRUPTED, "the process that gives turns ended");
    }
    return fail(ST_INTERRUPTED, "interrupted while this process waited for its turn");
}

enum status turn_open(int *ret_parent, int *ret_child)
{
    int end[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, end) != 0)
        return fail(ST_IO, "no socket for turns: %s", strerror(errno));
    *ret_parent = end[0];
    *ret_child = end[1];
    return ST_OK;
}

enum status turn_give(int fd, const struct turn_grant *grant)
{
    return turn_send(fd, grant, sizeof *grant);
}

bool turn_reported(int fd, int wait_ms, struct turn_report *ret, bool *ret_gone)
{
    return turn_receive(fd, wait_ms, ret, sizeof *ret, ret_gone);
}

enum status turn_send(int fd, const void *message, size_t bytes)
{
    if (send(fd, message, bytes, MSG_NOSIGNAL) == (ssize_t)bytes) return ST_OK;
    return fail(ST_IO, "the process at the other end of the socket is gone: %s", strerror(errno));
}

bool turn_receive(int fd, int wait_ms, void *message, size_t bytes, bool *ret_gone)
{
    *ret_gone = false;
    if (!readable(fd, wait_ms)) return false;
    if (receive(fd, message, bytes)) return true;
    *ret_gone = true;
    return false;
}
