/* room.h - whether a problem fits into memory, before memory is taken. */
#ifndef LAB_ROOM_H
#define LAB_ROOM_H

#include "lab/trial.h"

/* ST_UNSUPPORTED: `sets` sets of tensors, each with `extra` bytes more, scratch and the solution
 * in double precision need more memory than is free. */
enum status lab_room(const struct lab_bench *b, const struct lab_problem *p, int sets,
                     int64_t extra, struct arena *a);
/* ST_UNSUPPORTED: `what`, "copy at n 4096", needs more bytes of `where`, "memory", than are free
 * (-1: unknown). */
enum status room_check(const char *what, const char *where, double needed, int64_t free);

#endif
