/* A rung of C: the system's compiler makes a library of it, and this process loads that. */
#include "base/file.h"
#include "base/str.h"
#include "lab/own.h"

#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { FOLDER = 512 };

/* The file that is compiled: the user's, between a declaration of its function and a function that
 * unpacks a struct lab_call. So a function with other arguments is an error with its line. */
static void write_source(const struct lab_own *o, const char *path, struct str *s)
{
    const struct lab_ladder *l = o->ladder;
    struct lab_problem p = {.dtype = DT_F32, .out_dtype = DT_F32, .type = LAB_F32};
    memcpy(p.n, l->cpu, sizeof p.n);
    l->problem(&p);
    str_printf(s, "#include <stdint.h>\nvoid %s(float *", l->name);
    for (int i = 0; i < LAB_INPUTS && p.in[i]; i++) str_append(s, ", const float *");
    for (int i = 0; i < LAB_SIZES && l->sizes[i]; i++) str_append(s, ", int64_t");
    str_printf(s,
               ", int%s);\n#include \"%s\"\n"
               "struct strobe_call { void *out; const void *in[%d]; int64_t n[%d]; int threads; "
               "void *scratch; };\nvoid strobe_rung(const struct strobe_call *c);\n"
               "void strobe_rung(const struct strobe_call *c)\n{\n    %s(c->out",
               o->scratch.n ? ", void *" : "", path, LAB_INPUTS, LAB_SIZES, l->name);
    for (int i = 0; i < LAB_INPUTS && p.in[i]; i++) str_printf(s, ", c->in[%d]", i);
    for (int i = 0; i < LAB_SIZES && l->sizes[i]; i++) str_printf(s, ", c->n[%d]", i);
    str_printf(s, ", c->threads%s);\n}\n", o->scratch.n ? ", c->scratch" : "");
}

static enum status compile(const char *source, const char *library, bool warnings)
{
    char *const words[] = {"cc",
                           "-std=gnu17",
                           "-O3",
                           "-march=native",
                           "-fopenmp",
                           warnings ? "-Wall" : "-w",
                           "-shared",
                           "-fPIC",
                           "-Wl,-z,defs",
                           "-o",
                           (char *)library,
                           (char *)source,
                           "-lm",
                           NULL};
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
    return WIFEXITED(state) && WEXITSTATUS(state) == 0 ? ST_OK : ST_FORMAT;
}

static enum status load(struct lab_own *o, const char *library)
{
    o->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!o->library) return fail(ST_IO, "%s could not be loaded: %s", o->path, dlerror());
    void *run = dlsym(o->library, "strobe_rung");
    memcpy(&o->run, &run, sizeof run);
    return ST_OK;
}

enum status lab_own_load(struct lab_own *o, bool warnings)
{
    const char *base = getenv("TMPDIR");
    char folder[FOLDER], source[FOLDER + 16], library[FOLDER + 16];
    int n = snprintf(folder, sizeof folder, "%s/strobe-XXXXXX", base && *base ? base : "/tmp");
    char *path = realpath(o->path, NULL);
    if (!path) return fail(ST_IO, "%s: %s", o->path, strerror(errno));
    if (strpbrk(path, "\"\n")) {
        free(path);
        return fail(ST_USAGE, "cc cannot include a file with \" or a line break in its path");
    }
    if (n >= FOLDER || !mkdtemp(folder)) {
        free(path);
        return fail(ST_IO, "no temporary folder for the compiler: %s; set TMPDIR",
                    n >= FOLDER ? "its name is too long" : strerror(errno));
    }
    snprintf(source, sizeof source, "%s/rung.c", folder);
    snprintf(library, sizeof library, "%s/rung.so", folder);
    struct str s = {0};
    write_source(o, path, &s);
    enum status st = file_write(source, str_text(&s), s.len);
    str_release(&s);
    free(path);
    if (st == ST_OK) {
        st = compile(source, library, warnings);
        if (st == ST_FORMAT) st = fail(st, "%s does not compile; cc's message is above", o->path);
    }
    if (st == ST_OK) st = load(o, library);
    unlink(source);
    unlink(library);
    rmdir(folder);
    return st;
}

void lab_own_unload(struct lab_own *o)
{
    if (o->library) dlclose(o->library);
    o->library = NULL;
    o->run = NULL;
}
