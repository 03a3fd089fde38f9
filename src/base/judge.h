/* judge.h - THE judge of speed: two things that were timed, by the rule of verdict.h.
 *
 * Speeds are per unit of equal work: a token, a byte, a FLOP. So a larger batch is no slowdown.
 * Times that both took in the same turn are pairs. Other times were measured apart, and there is no
 * verdict about them if other programs used the machine meanwhile. Equal plans that ran in one
 * place do equal work: a difference between their times is noise. */
#ifndef BASE_JUDGE_H
#define BASE_JUDGE_H

#include "base/arena.h"
#include "base/verdict.h"

/* When a time was taken. Two times with the same set of turns (base/turn.h) and the same number are
 * a pair. */
struct timed_turn {
    double of, number;
};

struct timed {
    const double *ms; /* in the order in which they were taken */
    int n;
    const struct timed_turn *turn; /* of each time, ascending; NULL: they were taken apart */
    double work;                   /* that one time took, in `unit`; not above 0: unknown */
    const char *unit;              /* "token" */
    const char *plan; /* what ran and where: the plan, program, machine, threads; NULL: unknown */
    double others;    /* share of the processors, or of the time on a GPU, that other programs
                       * used; NAN: unknown */
};

enum judged {
    JUDGED_NOT,       /* too few times, or no equal work */
    JUDGED_SAME_PLAN, /* equal plans in one place: no verdict */
    JUDGED_BUSY,      /* measured apart while other programs used the machine: VERDICT_UNCERTAIN */
    JUDGED_APART,     /* measured apart */
    JUDGED_IN_TURNS   /* measured in turns */
};

struct judgement {
    enum judged how;
    struct verdict verdict; /* of the second beside the first */
    const char *per;        /* the unit if one time of each took unequal work; else NULL */
};

struct judgement judge(const struct timed *first, const struct timed *second);
/* Turns 0 ... n - 1 of one set, in the arena. */
const struct timed_turn *timed_rounds(int n, struct arena *a);

/* "is 1.25 times as fast per token as NAME (1.20 to 1.30, in 40 turns)"; NULL for JUDGED_NOT. */
const char *judge_words(const struct judgement *j, const char *first, struct arena *a);
/* "faster", "slower", "same", "cannot tell", "same plan"; "" if nothing was compared. */
const char *judge_name(const struct judgement *j);
/* The speed that a table shows: "1.25 x", else judge_name; NULL for JUDGED_NOT. */
const char *judge_cell(const struct judgement *j, struct arena *a);

#endif
