/* own.h - a kernel of the user's as a rung: a file of CUDA, or of C on a CPU.
 *
 * The file has a function with the name of the ladder, whose arguments are those of struct lab_call
 * (lab.h), and lines of comments that say how it is launched:
 *
 *     // @blocks  (n + 255) / 256
 *     // @threads 256
 *     // @shared  4 * 256
 *     // @scratch 4 * n
 *     // @zeroed
 *
 * `blocks` of the grid and `threads` of a block are up to three numbers with commas between them;
 * `shared` is the bytes of dynamic shared memory of a block, `scratch` the bytes of a buffer whose
 * address is the last argument; with `zeroed` the output is set to zero before each call, as part
 * of it. The formulas (lab/formula.h) are of the sizes of the problem and, on a GPU, `processors`.
 * A file of C has only the last two; the function's argument after the sizes is the number of
 * threads. `cc` compiles it to a library, which only a process that may crash loads. */
#ifndef LAB_OWN_H
#define LAB_OWN_H

#include "lab/formula.h"
#include "lab/lab.h"

struct str;

struct lab_own_line { /* a line with @ */
    int line;         /* its number; 0: there is none */
    int n;            /* formulas */
    struct formula of[3];
};

struct lab_own {
    const struct lab_ladder *ladder;
    const char *path, *text;
    int64_t bytes;
    struct lab_own_line blocks, threads, shared, scratch;
    lab_fn run; /* of a CPU, from lab_own_open on */
    volatile int64_t
        *since_ns; /* of a CPU: set to the time while a call runs, then to 0; or NULL */
    void *library; /* private to own_library.c */
    struct lab_rung rung;
};

/* Reads a file; everything lives in `a`. ST_USAGE: a line with @ is wrong, or is missing; the
 * message has its number. */
enum status lab_own_read(struct lab_own *o, const struct lab_ladder *l, bool gpu, const char *path,
                         struct arena *a);
/* Of a CPU: compiles it to a library in a new temporary folder; *ret_library lives in `a`. The
 * file sees `form` as FORM. The compiler's messages go to stderr, warnings too. */
enum status lab_own_compile(const struct lab_own *o, int form, const char **ret_library,
                            struct arena *a);
/* Deletes the library and its folder. */
void lab_own_remove(const char *library);
/* Loads it into this process, where its constructors run. */
enum status lab_own_open(struct lab_own *o, const char *library);
void lab_own_close(struct lab_own *o);

/* ST_USAGE: a formula, that of scratch too, has no value for this problem, or one that a device
 * cannot have. */
enum status lab_own_shape(const struct lab_own *o, const struct lab_problem *p,
                          struct kernel_shape *ret);
/* 0 if the formula has no value. */
int64_t lab_own_scratch(const struct lab_own *o, const struct lab_problem *p);

/* Appends a file to begin from: what it may use, and a simple kernel that is right. */
void lab_own_template(const struct lab_ladder *l, bool gpu, struct str *ret);

#endif
