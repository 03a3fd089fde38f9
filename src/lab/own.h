/* own.h - a user's kernel as a rung: a CUDA file for a GPU, a C file for a CPU.
 *
 * The file has a function with the name of the ladder, whose parameters are the members of struct
 * lab_call as lab.h describes, and comment lines that say how to launch the function:
 *
 *     // @blocks  (n + 255) / 256
 *     // @threads 256
 *     // @shared  4 * 256
 *     // @scratch 4 * n
 *     // @zeroed
 *
 * `blocks` of the grid and `threads` of a block are up to three formulas with commas between them.
 * `shared` is the number of bytes of dynamic shared memory of a block. `scratch` is the number of
 * bytes of a buffer whose address is the kernel's last argument. With `zeroed` the output is set to
 * zero before each call, and the time of a call includes this. Formulas (lab/formula.h) may use the
 * names of the problem's sizes and, on a GPU, `processors`. A C file may have only `scratch` and
 * `zeroed`; after the sizes its function has one more argument, the number of threads. `cc`
 * compiles a C file to a library, which is loaded only into a process that may crash. */
#ifndef LAB_OWN_H
#define LAB_OWN_H

#include "lab/formula.h"
#include "lab/lab.h"

struct str;

struct lab_own_line { /* a comment line with @ */
    int line;         /* line number in the file; 0: the file has no such line */
    int n;            /* number of formulas */
    struct formula of[3];
};

struct lab_own {
    const struct lab_ladder *ladder;
    const char *path, *text;
    int64_t bytes;
    struct lab_own_line blocks, threads, shared, scratch;
    lab_fn run; /* CPU only: set by lab_own_open */
    /* CPU only: receives the time at which the running call began; 0 between calls. May be NULL. */
    volatile int64_t *since_ns;
    void *library; /* private to own_library.c */
    struct lab_rung rung;
};

/* Reads a file; all results live in `a`. ST_USAGE: a line with @ is wrong (the message has its
 * number) or missing. */
enum status lab_own_read(struct lab_own *o, const struct lab_ladder *l, bool gpu, const char *path,
                         struct arena *a);
/* CPU only: compiles the file to a library in a new temporary folder; *ret_library, its path, lives
 * in `a`. The macro FORM is `form`. The compiler's errors and warnings go to stderr. */
enum status lab_own_compile(const struct lab_own *o, int form, const char **ret_library,
                            struct arena *a);
/* Deletes the library and its folder. */
void lab_own_remove(const char *library);
/* Loads the library into this process; its constructors run. */
enum status lab_own_open(struct lab_own *o, const char *library);
void lab_own_close(struct lab_own *o);

/* Evaluates all formulas, including that of scratch, for a problem. ST_USAGE: a formula has no
 * value, or a value that no device supports. */
enum status lab_own_shape(const struct lab_own *o, const struct lab_problem *p,
                          struct kernel_shape *ret);
/* Bytes of scratch; 0 if there is no formula or it has no value. */
int64_t lab_own_scratch(const struct lab_own *o, const struct lab_problem *p);

/* Appends the text of a file from which a user can begin: comments that explain the file, and a
 * simple correct kernel. */
void lab_own_template(const struct lab_ladder *l, bool gpu, struct str *ret);

#endif
