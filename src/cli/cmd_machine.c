/* strobe machine: what this machine can do at most, measured; kept for the commands that show shares of it. */
#include "base/isa.h"
#include "base/opt.h"
#include "base/str.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/device.h"
#include "view/ceilings.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MOST = 4096 };

static void print_head(const struct machine *m, struct str *s)
{
    str_printf(s, "%-10s %s\n", m->gpu ? "gpu" : "cpu", m->name);
    str_printf(s, "%-10s %s\n", m->gpu ? "" : "isa", m->isa);
    str_printf(s, "library    %s\n", m->library);
    str_printf(s, "measured   %s%s\n", m->date, m->quick ? ", quickly" : "");
}

static void print_row(struct str *s, const char *what, const char *all, const char *one,
                      const char *note)
{
    str_printf(s, "%-24s %16s", what, all);
    if (one) str_printf(s, " %16s", one);
    str_printf(s, "%s%s\n", *note ? "  " : "", note);
}

static void print_copy(struct str *s, const struct machine *m, const char *what,
                       const struct machine_copy *c, struct arena *a)
{
    char bytes[32];
    print_row(s, what, ceilings_bytes(c->moved, a),
              m->threads > 1 ? ceilings_bytes(c->moved_one, a) : NULL,
              arena_printf(a, "%s%s, read + written", str_bytes(bytes, (double)c->bytes),
                           m->gpu ? "" : " a thread"));
}

static void print_text(const struct machine *m, const char *path, struct arena *a, struct str *s)
{
    bool many = m->threads > 1;
    print_head(m, s);
    str_append(s, "\n");
    if (!m->gpu)
        print_row(s, "", arena_printf(a, "%d thread%s", m->threads, many ? "s" : ""),
                  many ? "1 thread" : NULL, "");
    for (int i = 0; i < m->peaks; i++) {
        const struct machine_peak *p = &m->peak[i];
        print_row(s, arena_printf(a, "product, %s", machine_precision_name(p->precision)),
                  ceilings_flops(p->flops, a), many ? ceilings_flops(p->flops_one, a) : NULL,
                  arena_printf(a, "%s, %lld x %lld x %lld", p->kernel, (long long)p->M,
                               (long long)p->N, (long long)p->K));
    }
    print_copy(s, m, "copy in L2", machine_copy_in_cache(m), a);
    print_copy(s, m, "copy past the caches", machine_copy_large(m), a);
    if (machine_was_disturbed(m))
        str_printf(s,
                   "\nOther programs kept %.1f processors busy meanwhile: the peaks are likely too "
                   "low. Measure again\nwhen the machine is quiet.\n",
                   m->others);
    if (path) str_printf(s, "\nkept in %s\n", path);
}

static void print_json(const struct machine *m, const char *path, struct str *s)
{
    json_t *j = machine_json(m);
    json_object_set_new(j, "v", json_integer(1));
    json_object_set_new(j, "path", path ? json_string(path) : json_null());
    char *text = json_dumps(j, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    BUG_IF(!text, "the peaks are no JSON");
    str_printf(s, "%s\n", text);
    free(text);
    json_decref(j);
}

enum status cmd_machine(int argc, char **argv)
{
    bool quick = false, json = false;
    int64_t threads = 0;
    const char *isa = NULL, *word = NULL;
    const struct opt options[] = {
        DEVICE_OPTION(&word),
        {"quick", OPT_FLAG, &quick, NULL, "in a few seconds: fewer shapes, fewer repeats"},
        {"threads", OPT_INT, &threads, "N", "as many as this process may use, unless given"},
        {"isa", OPT_TEXT, &isa, "SET",
         "nothing wider than amx, avx512_bf16, avx512, avx2, sse2 or plain"},
        {"json", OPT_FLAG, &json, NULL, "as one JSON object, with copies of every size"},
        {0},
    };
    TRY(opt_parse(options, &argc, argv, NULL));
    if (argc) return fail(ST_USAGE, "machine takes no words; found %s", argv[0]);
    if (threads < 0 || threads > THREADS_MOST)
        return fail(ST_USAGE, "--threads is 0 to %d", THREADS_MOST);
    if (isa) TRY(isa_limit_word(isa));
    struct arena a = {0};
    struct str s = {0};
    struct machine m;
    struct device device;
    const char *path = NULL;
    TRY(device_of_word(word, &device));
    threads_set(threads);
    enum status st = machine_identify(&m, &device, &a);
    if (st == ST_OK) st = ceilings_measure(&m, quick, &path, &a);
    if (st == ST_OK && json)
        print_json(&m, path, &s);
    else if (st == ST_OK)
        print_text(&m, path, &a, &s);
    fputs(str_text(&s), stdout);
    str_release(&s);
    arena_release(&a);
    return st;
}
