/* turn.h - turns that one process gives to several: one works, the others wait.
 *
 * `strobe compare` and `strobe profile` start one process for each variant and give them turns of
 * some units of work (steps), so that drift and other programs hit all of them alike. Parent and
 * child talk over a socket, whose number the child gets as --turns=FD. A child whose parent is gone
 * gets no turn. */
#ifndef BASE_TURN_H
#define BASE_TURN_H

#include "base/base.h"

enum { TURN_FD = 3, TURN_NONE = -1 }; /* the child's end of the socket; no turns: work on */

/* What a child says when it waits for a turn. */
struct turn_report {
    int64_t left; /* units of work left; 0: it will end in its next turn */
    double ms;    /* of a unit in the last turn, median; 0: unknown */
};

/* What it is given. */
struct turn_grant {
    int64_t of;     /* which set of processes: the same number for all that take turns */
    int64_t number; /* 0: to warm up; turns of one number are neighbours in time */
    int64_t units;
};

/* The child: waits for a turn. ST_INTERRUPTED after a signal (base/interrupt.h), or if the parent
 * ended. */
enum status turn_wait(int fd, const struct turn_report *report, struct turn_grant *ret);

/* The parent: opens a socket; both ends are closed on exec. */
enum status turn_open(int *ret_parent, int *ret_child);
enum status turn_give(int fd, const struct turn_grant *grant);
/* Reads a report if there is one within `wait_ms`. False: not yet. *ret_gone: the child ended. */
bool turn_reported(int fd, int wait_ms, struct turn_report *ret, bool *ret_gone);

/* Messages of other kinds over the same sockets, which arrive whole. The second returns false if
 * none came within `wait_ms`; *ret_gone: the other end is closed. */
enum status turn_send(int fd, const void *message, size_t bytes);
bool turn_receive(int fd, int wait_ms, void *message, size_t bytes, bool *ret_gone);

#endif
