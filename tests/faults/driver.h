/* The harness that makes calls fail, kills, cuts the power and runs two at once, and judges what is
 * left. driver.c has the options and the loop over trials; each mode is a file. */
#pragma once
#include "faults.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    EXIT_SKIPPED = 77,
    PATH_BYTES = 1024,
    EVERY = 4,
    HALF = 12,
    LAST = 20,
    SAVED = LAST / EVERY
};

/* What may be wrong after a trial. */
enum finding {
    FIND_SIGNAL,    /* ended by a signal: abort, segmentation fault, bus error */
    FIND_HANG,      /* not finished after the time limit */
    FIND_BUG,       /* reports a bug of the program */
    FIND_WORDLESS,  /* failed without a sentence */
    FIND_WORDY,     /* failed with more than one */
    FIND_ADVICE,    /* denies what is there, or advises to delete what is only unreadable */
    FIND_DAMAGED,   /* calls damaged or missing what could not be read */
    FIND_SILENT,    /* exit code 0, no warning, and a result is missing or differs */
    FIND_ANEW,      /* began from iteration 0 although there is a checkpoint */
    FIND_OLDER,     /* took an older checkpoint after a single fault that a retry survives */
    FIND_LOST,      /* the newest checkpoint is gone */
    FIND_LOST_BEST, /* the best checkpoint is gone */
    FIND_LOG,       /* log.jsonl lost or doubled lines */
    FIND_BITS,      /* weights, moments or text differ from those of an undisturbed run */
    FIND_STUCK,     /* the next run without faults fails */
    FIND_LEFT,      /* files that no undisturbed run leaves, after the next clean run */
    FIND_CHANGED,   /* a command that only reads changed a run */
    FIND_BOTH,      /* two runs in one place, both exit with 0 */
    FINDINGS
};

enum command { TRAIN, RESUME, DATA, EVAL, SAMPLE, REPORT, COMPARE, COMMANDS };
extern const char *const command_names[COMMANDS];

struct settings {
    char strobe[PATH_BYTES], preload[PATH_BYTES], work[PATH_BYTES];
    uint64_t seed;
    int jobs;
    int64_t limit;   /* trials at most, chosen at random; 0: all */
    double seconds;  /* no trial starts later; 0: no limit */
    bool sample;     /* some of each mode, in the time that `make check` has */
    int command;     /* calls, cuts, kills: only this one; -1: all */
    int call, error; /* calls: only these; -1, 0: all */
    int64_t at;      /* only this trial: the call, the prefix, the kill, the pair; 0: all */
    int on;          /* calls: 1 once, 2 from then on, 0 both */
    bool every;      /* calls: every allocation, not some of each stack */
    bool keep;
};
extern struct settings settings;

/* A process that tries: a folder `dir` for the trial, and `side` for what is not judged. */
struct worker {
    int number;
    char dir[PATH_BYTES], side[PATH_BYTES];
    const char *repeat; /* the options that repeat the current trial */
    bool failed;        /* the current trial has a finding */
    bool missed;        /* what it was to try did not happen */
    bool killed;        /* its process was killed before it ended */
    bool warned;        /* the disturbed command */
};
[[gnu::format(printf, 3, 4)]] void report(struct worker *w, enum finding f, const char *format,
                                          ...);
[[gnu::noreturn, gnu::format(printf, 1, 2)]] void die(const char *format, ...);

/* A mode: trials 0 to n-1, tried by several processes in any order. */
typedef void trial_function(struct worker *w, int64_t index);
int run_trials(const char *mode, int64_t n, trial_function *try);

/* --- process.c */

struct fault {
    int call, error; /* error: an errno or FAULTS_SHORT */
    int64_t at;
    bool on;
};
struct outcome {
    int code, signal; /* code -1: ended by `signal` */
    bool hung, hit;   /* hit: the fault happened */
    bool killed;      /* by `kill_after` */
    double seconds;
    char out[1 << 16], err[1 << 14], where[256];
    uint64_t count[FAULTS_CALLS];
};
struct start {
    char *const *words;
    const struct fault *fault; /* or NULL */
    const char *record;        /* or NULL */
    const char *stacks;        /* or NULL */
    bool counted;              /* preload the library also without a fault */
    double kill_after;         /* seconds, then SIGKILL; 0: never */
    const char *suffix;        /* of the files of stdout and stderr; NULL: "" */
};
struct process {
    pid_t pid;
    double began;
    struct start start;
};
void process_start(const struct worker *w, const struct start *s, struct process *ret);
void process_wait(const struct worker *w, struct process *p, struct outcome *ret);
void run(const struct worker *w, const struct start *s, struct outcome *ret);
/* The fault of these settings as words: "--call=read --at=3 --error=EIO --once". */
const char *fault_words(const struct fault *f);
const char *error_word(int error);
double now(void);
uint64_t random_of(uint64_t seed, uint64_t n);

/* --- files.c */

void copy_tree(const char *from, const char *to); /* `to` is removed first */
void remove_tree(const char *path);
void make_dir(const char *path);
bool exists(const char *path);
char *read_whole(const char *path, size_t *ret_bytes); /* NULL: there is none; to be freed */
void write_whole(const char *path, const void *data, size_t bytes);
bool same_file(const char *a, const char *b);
/* Names below `path`, sorted, one a line; with `digests` also of contents. To be freed. */
char *list_tree(const char *path, bool digests);
/* The lines that only one of two sorted lists has, "+NAME" or "-NAME"; to be freed. */
char *list_difference(const char *before, const char *now);
[[gnu::format(printf, 2, 3)]] char *path_in(char path[PATH_BYTES], const char *format, ...);

/* --- scene.c */

/* Builds work/base: the folders that trials start from, and the results of undisturbed runs. */
void scene_build(void);
/* A text of random words. */
void write_text(const char *dir, const char *name, uint64_t seed, uint64_t words_in_it);
const char *scene_start(enum command c); /* the folder that a trial of the command starts from */
char *const *scene_words(enum command c);
const char *scene_expected(enum command c); /* stdout of an undisturbed EVAL to COMPARE */
/* The output without what depends on the clock; to be freed. */
char *scene_timeless(enum command c, const char *out);
/* A run of a trial, and what it is compared with in work/base: the tensors of every checkpoint that
 * is ever saved (NULL: not compared), and the run's end. */
struct subject {
    const char *run, *saved, *end;
    int last; /* iteration */
};
extern const struct subject the_run, run_of_text2, compared_run;
/* The command without faults that ends what a trial began; returns false if it fails. */
bool scene_finish(struct worker *w, enum command c, struct outcome *ret);

/* --- judge.c */

/* What the process said and how it ended. `c`: TRAIN also where another process may train. */
void judge_words(struct worker *w, const struct outcome *o, enum command c);
/* The folder after a disturbed command. `floor`: a checkpoint of at least this iteration must be
 * there (0: none need be). `once`: the fault passes when the call is repeated. */
void judge_run(struct worker *w, const struct subject *s, const struct outcome *o, int floor,
               bool once);
void judge_data(struct worker *w, const struct outcome *o);
/* What EVAL to COMPARE printed and wrote. */
void judge_output(struct worker *w, enum command c, const struct outcome *o);
/* Ends the run or the data set without faults and compares it with the undisturbed one. */
void judge_finish(struct worker *w, enum command c);
void judge_finish_of(struct worker *w, enum command c, const struct subject *s);
bool same_end(const struct worker *w, const struct subject *s, char why[256]);

/* --- modes */

int mode_calls(void), mode_cuts(void), mode_kills(void), mode_pairs(void);
