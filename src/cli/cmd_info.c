/* strobe info: this build, this machine, and what can run here. */
#include "backend/backend.h"
#include "base/isa.h"
#include "base/opt.h"
#include "base/str.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/version.h"
#include "measure/ops_doc.h"
#include "train/environment.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the program cannot do in a build that lacks an optional library. */
static const struct {
    const char *library, *without;
} optional[] = {
    {"oneDNN", "matrix products run on the program's own loops"},
    {"libcurl", "`strobe data` cannot download"},
};

static const char gpu[] = "no CUDA backend in this build";

static bool has_library(const struct environment *e, const char *name)
{
    bool found = false;
    for (int i = 0; i < e->libraries; i++) found |= !strcmp(e->library[i].name, name);
    return found;
}

static void print_text(const struct environment *e, const char *isa)
{
    char memory[32];
    printf("version    %s (%s, %s)\n", e->version, e->commit, e->mode);
    printf("compiler   %s\n", e->compiler);
    printf("machine    %s, %s, %s\n", e->host, e->os, e->kernel);
    printf("cpu        %s\n", e->cpu);
    printf("isa        %s\n", *isa ? isa : "nothing beyond the plain one");
    printf("cores      %d, of which this process may use %d\n", e->cores, e->threads);
    printf("memory     %s\n", str_bytes(memory, (double)e->memory_bytes));
    for (int i = 0; i < e->libraries; i++)
        printf("%-10s %-10s %s\n", i ? "" : "libraries", e->library[i].name, e->library[i].version);
    for (int i = 0; i < COUNT_OF(optional); i++)
        if (!has_library(e, optional[i].library))
            printf("%-10s %-10s not in this build: %s\n", "", optional[i].library,
                   optional[i].without);
    printf("backends  ");
    for (int i = 0; backend_at(i); i++) printf(" %s", backend_at(i)->name);
    printf("\ngpu        %s\n", gpu);
}

static void print_json(const struct environment *e, const char *isa)
{
    json_t *libraries = json_object(), *backends = json_array();
    for (int i = 0; i < e->libraries; i++)
        json_object_set_new(libraries, e->library[i].name, json_string(e->library[i].version));
    for (int i = 0; backend_at(i); i++)
        json_array_append_new(backends, json_string(backend_at(i)->name));
    json_t *j = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:o, "
                          "s:o, s:s}",
                          "v", 1, "version", e->version, "commit", e->commit, "mode", e->mode,
                          "compiler", e->compiler, "host", e->host, "os", e->os, "kernel",
                          e->kernel, "cpu", e->cpu, "isa", isa, "cores", e->cores, "threads",
                          e->threads, "memory_bytes", (json_int_t)e->memory_bytes, "libraries",
                          libraries, "backends", backends, "gpu", gpu);
    char *text = json_dumps(j, JSON_INDENT(2));
    BUG_IF(!text, "facts about this machine that are no JSON");
    printf("%s\n", text);
    free(text);
    json_decref(j);
}

static void print_ops(void)
{
    struct str s = {0};
    ops_doc_print(&s);
    fputs(str_text(&s), stdout);
    str_release(&s);
}

enum status cmd_info(int argc, char **argv)
{
    bool json = false, ops = false;
    const struct opt options[] = {
        {"json", OPT_FLAG, &json, NULL, "as one JSON object"},
        {"ops", OPT_FLAG, &ops, NULL, "the operators and their kernels instead, as Markdown"},
        {0},
    };
    TRY(opt_parse(options, &argc, argv, NULL));
    if (argc) return fail(ST_USAGE, "info takes no words; found %s", argv[0]);
    if (ops) {
        print_ops();
        return ST_OK;
    }
    struct arena a = {0};
    struct environment e;
    environment_gather(&e, &a);
    e.version = version_number;
    e.commit = version_commit;
    e.mode = version_mode;
    e.threads = (int)threads_available();
    if (json)
        print_json(&e, isa_names(&a));
    else
        print_text(&e, isa_names(&a));
    arena_release(&a);
    return ST_OK;
}
