/* cases.h - selects the cases of a test program, and lets a case skip itself.
 *
 * CASE=PATTERN in the environment runs the cases whose name matches (* and ? as in a shell); every
 * test program obeys it. TEST_SHARD=K/N, set by the runner for a test that asks for shards, runs
 * part K of N. */
#ifndef SUPPORT_CASES_H
#define SUPPORT_CASES_H

#include <stdbool.h>

/* Whether item i belongs to this shard; without TEST_SHARD every item does. */
bool shard_has(int i);

/* Whether the tests run with sanitizers. */
#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* The exit code of a program or script that cannot run on this machine. */
enum { EXIT_SKIPPED = 77 };

/* Ends the case as skipped and prints why (as printf); the runner repeats the reason at its end. */
#define SKIP(...) (print_skipped(__VA_ARGS__), skip())
void print_skipped(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
