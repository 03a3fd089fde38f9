/* counter_shares.h - THE list of what hardware counters say of a kernel as a share of its time or
 * of a peak, from 0 to 1. Each is a member of struct kernel_counters and, by the same name, of the
 * rows of profile.json, and a column of the table and of the page. Over several kernels it is the
 * mean, weighted by their time.
 *
 * COUNTER_SHARES(X, Y): rows X(Y, member, id of the column, title, help). */
#ifndef BASE_COUNTER_SHARES_H
#define BASE_COUNTER_SHARES_H

/* clang-format off */
#define COUNTER_SHARES(X, Y) \
    X(Y, dram_busy,     "dram",   "DRAM %",   "DRAM traffic / the most that DRAM can move") \
    X(Y, tensor_active, "tensor", "tensor %", "time in which tensor cores work") \
    X(Y, sm_active,     "sm",     "SM %",     "time in which an SM has work")
/* clang-format on */

#define COUNTER_SHARE_MEMBER(type, member, ...) type member;

#endif
