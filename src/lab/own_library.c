/* Compiles a user's C file to a library with the system's compiler, and loads the library. */
#include "base/file.h"
#include "base/str.h"
#include "lab/own.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Writes the file that is compiled. It declares the user's function, includes the user's file, and
 * defines a function that unpacks a struct lab_call. The declaration makes the compiler report a
 * function with other arguments, with its line. */
static void write_source(const struct lab_own *o, const char *path, struct str *s)
{
    const struct lab_ladder *l = o->ladder;
    struct lab_problem p = {.dtype = DT_F32, .out_dtype = DT_F32, .type = LAB_F32};
    memcpy(p.n, l->cpu, sizeof p.n);
    l->problem(&p);
    str_printf(s, "#include <stdint.h>\nvoid %s(float *", l->name);
    for (int i = 0; i < LAB_INPUTS && p.in[i]; i++) str_append(s, ", const float *");
    for (int i = 0; i < LAB_SIZES && l->sizes[i]; i++) str_append(s, ", int64_t");
    str_printf(
        s,
        ", int%s);\n#include \"%s\"\n"
        "struct strobe_call { void *out; const void *in[%d]; int64_t n[%d]; int form, threads; "
        "void *scratch; };\nvoid strobe_rung(const struct strobe_call *c);\n"
        "void strobe_rung(const struct strobe_call *c)\n{\n    %s(c->out",
        o->scratch.n ? ", void *" : "", path, LAB_INPUTS, LAB_SIZES, l->name);
    for (int i = 0; i < LAB_INPUTS && p.in[i]; i++) str_printf(s, ", c->in[%d]", i);
    for (int i = 0; i < LAB_SIZES && l->sizes[i]; i++) str_printf(s, ", c->n[%d]", i);
    str_printf(s, ", c->threads%s);\n}\n", o->scratch.n ? ", c->scratch" : "");
}

static enum status compile(const char *source, const char *library, const char *form)
{
    char *const words[] = {"cc",    "-std=gnu17",    "-O3",          "-march=native", "-fopenmp",
                           "-Wall", "-shared",       "-fPIC",        (char *)form,    "-Wl,-z,defs",
                           "-o",    (char *)library, (char *)source, "-lm",           NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int state = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    int error = posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        return fail(ST_UNSUPPORTED,
                    "the compiler cc could not be started: %s; install gcc or clang",
                    strerror(error));
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR) continue;
    if (WIFSIGNALED(state))
        return fail(ST_INTERRUPTED, "cc was stopped: %s", strsignal(WTERMSIG(state)));
    return WEXITSTATUS(state) == 0 ? ST_OK : ST_FORMAT;
}

enum status lab_own_open(struct lab_own *o, const char *library)
{
    o->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!o->library)
        return fail(ST_IO,
                    "%s could not be loaded: %s; set TMPDIR to a folder from which programs may "
                    "be run",
                    o->path, dlerror());
    void *run = dlsym(o->library, "strobe_rung");
    memcpy(&o->run, &run, sizeof run);
    return ST_OK;
}

void lab_own_close(struct lab_own *o)
{
    if (o->library) dlclose(o->library);
    o->library = NULL;
    o->run = NULL;
}

static enum status write_and_compile(const struct lab_own *o, int form, const char *library,
                                     struct arena *a)
{
    char *source = arena_printf(a, "%.*s.c", (int)(strlen(library) - strlen(".so")), library);
    char *path = realpath(o->path, NULL);
    struct str s = {0};
    if (!path) return fail(ST_IO, "%s: %s", o->path, strerror(errno));
    enum status st = ST_OK;
    if (strpbrk(path, "\"\n"))
        st = fail(ST_USAGE, "cc cannot include a file with \" or a line break in its path");
    if (st == ST_OK) {
        write_source(o, path, &s);
        st = file_write(source, str_text(&s), s.len);
    }
    if (st == ST_OK) st = compile(source, library, arena_printf(a, "-DFORM=%d", form));
    if (st == ST_FORMAT) st = fail(st, "%s does not compile; cc's message is above", o->path);
    unlink(source);
    str_release(&s);
    free(path);
    return st;
}

enum status lab_own_compile(const struct lab_own *o, int form, const char **ret_library,
                            struct arena *a)
{
    const char *base = getenv("TMPDIR");
    char *folder = arena_printf(a, "%s/strobe-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(folder))
        return fail(ST_IO, "no temporary folder for the compiler: %s; set TMPDIR", strerror(errno));
    *ret_library = arena_printf(a, "%s/rung.so", folder);
    enum status st = write_and_compile(o, form, *ret_library, a);
    if (st != ST_OK) lab_own_remove(*ret_library);
    return st;
}

void lab_own_remove(const char *library)
{
    char folder[PATH_MAX];
    unlink(library);
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(library, '/') - library), library);
    rmdir(folder);
}
