#include "view/machine_view.h"

#include "base/arena.h"
#include "base/str.h"
#include "present/table_form.h"
#include "view/ceilings.h"

#include <jansson.h>

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
                           m->gpu ? "" : " per thread"));
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
        print_row(s, arena_printf(a, "matmul, %s", machine_precision_name(p->precision)),
                  ceilings_flops(p->flops, a), many ? ceilings_flops(p->flops_one, a) : NULL,
                  arena_printf(a, "%s, %lld x %lld x %lld", p->kernel, (long long)p->M,
                               (long long)p->N, (long long)p->K));
    }
    print_copy(s, m, "copy in L2", machine_copy_in_cache(m), a);
    print_copy(s, m, "copy from memory", machine_copy_large(m), a);
    if (machine_was_disturbed(m))
        str_printf(s,
                   "\nOther programs kept %.1f processors busy during the measurement, so the "
                   "peaks are likely too low.\nMeasure again when the machine is idle.\n",
                   m->others);
    if (path) str_printf(s, "\nstored in %s\n", path);
}

static void print_json(const struct machine *m, const char *path, struct str *s)
{
    json_t *j = machine_json(m);
    json_object_set_new(j, "v", json_integer(1));
    json_object_set_new(j, "path", path ? json_string(path) : json_null());
    json_print(j, s);
}

void machine_view_print(const struct machine *m, const char *path, bool json, struct str *s,
                        struct arena *a)
{
    if (json)
        print_json(m, path, s);
    else
        print_text(m, path, a, s);
}
