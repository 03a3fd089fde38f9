#include "lab/probe.h"

#include "base/str.h"
#include "base/turn.h"
#include "lab/memory_check.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

struct probing {
    const struct lab_options *o;
    struct lab_bench bench;
    struct arena arena;
    int fd;
};

static enum status say(const struct probing *p, enum probe_what what, const char *text)
{
    struct probe_note note = {.what = what};
    snprintf(note.text, sizeof note.text, "%s", text);
    return turn_send(p->fd, &note, sizeof note);
}

/* Compiles a GPU kernel. Prints the compiler's whole message, because fail() would truncate it. */
static enum status compile(struct probing *p)
{
    struct str s = {0};
    if (!p->o->device.backend->texts) return ST_OK;
    enum status st = lab_bench_assembly(&p->bench, 0, &s);
    if (st != ST_OK) {
        fprintf(stderr, "%s", str_text(&s));
        st = fail(st, "%s does not compile; the compiler's message is above", p->o->own->name);
    }
    str_release(&s);
    /* Fails if the user's file does not define the kernel that the ladder launches. */
    const struct kernel_shape least = {{1, 1, 1}, {1, 1, 1}, 0};
    struct kernel_resources unused;
    if (st == ST_OK)
        st = p->o->device.backend->texts->resources(p->bench.context, p->bench.kernel[0], &least,
                                                    &unused);
    return st;
}

/* *ret_found: whether the kernel did something wrong; then a note was sent. */
static enum status probe_size(struct probing *p, const int64_t n[LAB_SIZES], bool *ret_found)
{
    struct lab_trial t = {0};
    const char *what = lab_size_text(p->o->ladder, n, &p->arena), *where;
    struct lab_problem problem;
    *ret_found = false;
    struct kernel_shape shape;
    lab_problem_of(&p->bench, n, &problem);
    if (lab_shape(p->o->own, &problem, &shape) != ST_OK) {
        *ret_found = true;
        int bytes = (int)strcspn(fail_message(), "\n");
        return say(p, PROBE_FINDS,
                   arena_printf(&p->arena, "at %s: %.*s", what, bytes, fail_message()));
    }
    /* The table of results will show why the device cannot run this size. */
    if (lab_rung_refuses(&p->bench, 0, &problem, &p->arena)) return ST_OK;
    TRY(memory_check_problem(&p->bench, &problem, 1, 0, &p->arena));
    enum status st = lab_trial_open(&t, &p->bench, n, 0);
    if (st == ST_OK) st = say(p, PROBE_LAUNCHES, what);
    if (st == ST_OK) {
        st = lab_trial_run(&t, 0);
        if (st == ST_OK) st = say(p, PROBE_RETURNED, what);
        if (st == ST_OK) st = lab_trial_written(&t, &where, &p->arena);
        if (st == ST_DEVICE) where = fail_message();
        *ret_found = (st == ST_OK && where) || st == ST_DEVICE;
        if (*ret_found) st = say(p, PROBE_FINDS, arena_printf(&p->arena, "at %s: %s", what, where));
    }
    lab_trial_close(&t);
    return st;
}

static enum status probe_all(struct probing *p, const int64_t size[][LAB_SIZES], int sizes)
{
    const struct lab_options *o = p->o;
    bool found = false;
    TRY(lab_bench_open(&p->bench, o->ladder, &o->device, o->type, o->form, "", o->own));
    TRY(compile(p));
    for (int k = 0; k < LAB_ODD && o->ladder->odd[k][0] && !found; k++)
        TRY(probe_size(p, o->ladder->odd[k], &found));
    for (int k = 0; k < sizes && !found; k++) TRY(probe_size(p, size[k], &found));
    return found ? ST_OK : say(p, PROBE_ENDS, "");
}

enum status probe_run(const struct lab_options *o, struct lab_own *own, const char *library,
                      const int64_t size[][LAB_SIZES], int sizes, int fd)
{
    struct probing p = {.o = o, .fd = fd};
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* or a kernel that never ends would outlive the parent */
    enum status st = ST_OK;
    if (library) { /* loading runs the user's constructors, which may crash */
        st = say(&p, PROBE_LAUNCHES, "its loading");
        if (st == ST_OK) st = lab_own_open(own, library);
        if (st == ST_OK) st = say(&p, PROBE_RETURNED, "its loading");
    }
    if (st == ST_OK) st = probe_all(&p, size, sizes);
    if (st != ST_OK) (void)!say(&p, PROBE_FAILS, fail_message());
    if (p.bench.context) lab_bench_close(&p.bench);
    arena_release(&p.arena);
    return ST_OK;
}
