#include "view/machine_view.h"

#include "base/arena.h"
#include "base/load.h"
#include "base/str.h"
#include "present/table_form.h"
#include "view/ceilings.h"
#include "view/lab_memory_view.h"

#include <jansson.h>

static void print_head(const struct machine *m, struct str *s)
{
    str_printf(s, "%-10s %s\n", m->gpu ? "gpu" : "cpu", m->name);
    str_printf(s, "%-10s %s\n", m->gpu ? "" : "isa", m->isa);
    str_printf(s, "library    %s\n", m->library);
    bool quick = m->measurements ? m->history[m->measurements - 1].quick : m->quick;
    str_printf(s, "measured   %s%s\n", m->date, quick ? ", quickly" : "");
}

/* "; the lowest of 3 measurements was 115 GFLOP/s"; "" if there is only one. */
static const char *spread_words(const struct machine *m, enum machine_precision p, struct arena *a)
{
    double low;
    int n = machine_lowest(m, p, &low);
    if (n < 2) return "";
    return arena_printf(a, "; the lowest of %d measurements was %s", n,
                        p == MACHINE_PRECISIONS ? ceilings_bytes(low, a) : ceilings_flops(low, a));
}

/* Prints how reliable the last measurement was, and which measurement is kept. */
static void print_conditions(const struct machine *m, struct str *s)
{
    const struct machine_measurement *last = &m->history[m->measurements - 1];
    if (m->measurements > 1)
        str_printf(s,
                   "\nKept is the best of %d measurements, because a ceiling can only be "
                   "measured too low;\n`strobe machine --forget` begins anew.\n",
                   m->measurements);
    if (!load_is_busy(last->others)) return;
    str_printf(s,
               "\nConditions were bad: other programs kept %.1f processors busy during this "
               "measurement.\n",
               last->others);
    str_append(s, load_is_busy(m->others)
                      ? "The peaks are likely too low; measure again when the machine is idle.\n"
                      : "An earlier measurement was undisturbed, so the peaks can be used.\n");
}

static void print_row(struct str *s, const char *what, const char *all, const char *one,
                      const char *note)
{
    str_printf(s, "%-24s %16s", what, all);
    if (one) str_printf(s, " %16s", one);
    str_printf(s, "%s%s\n", *note ? "  " : "", note);
}

static void print_copy(struct str *s, const struct machine *m, const char *what,
                       const struct machine_copy *c, const char *spread, struct arena *a)
{
    char bytes[32];
    print_row(s, what, ceilings_bytes(c->moved, a),
              m->threads > 1 ? ceilings_bytes(c->moved_one, a) : NULL,
              arena_printf(a, "%s%s, read + written%s", str_bytes(bytes, (double)c->bytes),
                           m->gpu ? "" : " per thread", spread));
}

static void print_links(const struct machine *m, struct str *s, struct arena *a)
{
    char bytes[32];
    for (int i = 0; i < m->links; i++) {
        const struct machine_link *l = &m->link[i];
        print_row(s, arena_printf(a, "all-reduce, %d ranks", l->ranks), ceilings_bytes(l->sent, a),
                  m->threads > 1 ? "" : NULL,
                  arena_printf(a, "%s, sent by each rank", str_bytes(bytes, (double)l->bytes)));
    }
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
                  arena_printf(a, "%s, %lld x %lld x %lld%s", p->kernel, (long long)p->M,
                               (long long)p->N, (long long)p->K, spread_words(m, p->precision, a)));
    }
    print_copy(s, m, "copy in L2", machine_copy_in_cache(m), "", a);
    print_copy(s, m, "copy from memory", machine_copy_large(m),
               spread_words(m, MACHINE_PRECISIONS, a), a);
    print_links(m, s, a);
    if (m->measurements) print_conditions(m, s);
    lab_memory_record(m, s, a);
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
