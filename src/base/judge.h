/* judge.h - THE comparison of two timed series, by the rule of verdict.h.
 *
 * Times are per unit of work (a token, a byte, a FLOP), so a larger batch does not count as slower.
 * Two times from the same turn form a pair. Without pairs, the series were measured apart, and
 * there is no verdict if other programs used the machine meanwhile. Runs of the same plan on the
 * same machine do the same work, so a difference between their times is noise. */
#ifndef BASE_JUDGE_H
#define BASE_JUDGE_H

#include "base/arena.h"
#include "base/verdict.h"

/* The turn in which a time was taken. `of` identifies the set of turns (base/turn.h). Two times
 * with the same `of` and `number` are a pair. */
struct timed_turn {
    double of, number;
};

struct timed {
    const double *ms; /* in the order in which they were taken */
    int n;
    const struct timed_turn *turn; /* of each time, ascending; NULL: not measured in turns */
    double work;                   /* units of work behind each time; 0 or less: unknown */
    const char *unit;              /* "token" */
    const char *plan; /* identifies the plan, program, machine and threads; NULL: unknown */
    double others;    /* share of the processors, or of the GPU's time, that other programs used;
                       * NAN: unknown */
};

enum judged {
    JUDGED_NOT,       /* too few times, or the units of work differ or are unknown */
    JUDGED_SAME_PLAN, /* the same plan on the same machine: no verdict */
    JUDGED_BUSY,      /* measured apart while other programs used the machine: VERDICT_UNCERTAIN */
    JUDGED_APART,     /* measured apart */
    JUDGED_IN_TURNS   /* measured in turns */
};

struct judgement {
    enum judged how;
    struct verdict verdict; /* about the second relative to the first */
    const char *per;        /* the unit, if the times of the two are for unequal work; else NULL */
};

struct judgement judge(const struct timed *first, const struct timed *second);
/* Turns 0 ... n - 1 of set 0, in the arena. */
const struct timed_turn *timed_rounds(int n, struct arena *a);

/* "is 1.25 times as fast per token as NAME (1.20 to 1.30, in 40 turns)"; NULL for JUDGED_NOT. */
const char *judge_words(const struct judgement *j, const char *first, struct arena *a);
/* "faster", "slower", "same", "cannot tell", "same plan"; "" if nothing was compared. */
const char *judge_name(const struct judgement *j);
/* The cell of a table: "1.25 x" if faster or slower, else judge_name; NULL for JUDGED_NOT. */
const char *judge_cell(const struct judgement *j, struct arena *a);

#endif
