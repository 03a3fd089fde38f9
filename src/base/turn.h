/* turn.h - a parent process lets its child processes work in turns, one at a time.
 *
 * `strobe compare` and `strobe profile` start one child process per variant and give each a few
 * units of work (steps) per turn, so that drift and other programs slow all variants alike. They
 * communicate over a socket, whose descriptor the child gets as --turns=FD. */
#ifndef BASE_TURN_H
#define BASE_TURN_H

#include "base/base.h"

/* The child's end of the socket; TURN_NONE: the process works without turns. */
enum { TURN_FD = 3, TURN_NONE = -1 };

/* Sent by a child that waits for a turn. */
struct turn_report {
    int64_t left; /* units of work left; 0: the child will end in its next turn */
    double ms;    /* median time of a unit in the last turn; 0: unknown */
};

/* Sent by the parent: a turn. */
struct turn_grant {
    int64_t of;     /* identifies the set of processes that take turns with each other */
    int64_t number; /* 0: warm-up. Turns with the same number run one after another */
    int64_t units;  /* of work to do in this turn */
};

/* The child: waits for a turn. ST_INTERRUPTED after a signal (base/interrupt.h), or if the parent
 * ended. */
enum status turn_wait(int fd, const struct turn_report *report, struct turn_grant *ret);

/* The parent: opens a socket; both ends are closed on exec. */
enum status turn_open(int *ret_parent, int *ret_child);
enum status turn_give(int fd, const struct turn_grant *grant);
/* Reads a report; false if none arrives within `wait_ms`. *ret_gone: the child ended. */
bool turn_reported(int fd, int wait_ms, struct turn_report *ret, bool *ret_gone);

/* Messages of other kinds over the same sockets, which keep message boundaries. turn_receive
 * returns false if none arrives within `wait_ms`; *ret_gone: the other end is closed. */
enum status turn_send(int fd, const void *message, size_t bytes);
bool turn_receive(int fd, int wait_ms, void *message, size_t bytes, bool *ret_gone);

#endif
