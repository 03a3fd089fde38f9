/* The best of several measurements of one machine, and their history. */
#include "base/base.h"
#include "machine/machine_parts.h"

#include <math.h>
#include <string.h>

/* A smaller copy can be slower than a larger one, because memcpy switches to its faster method only
 * for large copies; one thread can be faster than all threads if other processes are busy. In both
 * cases the ceiling is the larger number. */
void machine_make_ceilings(struct machine *m)
{
    for (int i = m->copies - 1; i >= 0; i--) {
        struct machine_copy *c = &m->copy[i];
        bool last = i == m->copies - 1;
        c->moved_one = fmax(c->moved_one, last ? 0 : c[1].moved_one);
        c->moved = fmax(fmax(c->moved, c->moved_one), last ? 0 : c[1].moved);
    }
}

const struct machine_copy *machine_copy_large(const struct machine *m)
{
    return m->copies ? &m->copy[m->copies - 1] : NULL;
}

void machine_start_history(struct machine *m)
{
    struct machine_measurement *x = &m->history[0];
    *x = (struct machine_measurement){.date = m->date, .quick = m->quick, .others = m->others};
    for (int i = 0; i < m->peaks; i++) x->flops[m->peak[i].precision] = m->peak[i].flops;
    if (m->copies) x->moved = machine_copy_large(m)->moved;
    m->measurements = 1;
}

static void keep_peak(struct machine *m, const struct machine_peak *earlier)
{
    struct machine_peak *p = NULL;
    for (int i = 0; i < m->peaks; i++)
        if (m->peak[i].precision == earlier->precision) p = &m->peak[i];
    if (!p) {
        BUG_IF(m->peaks == MACHINE_PRECISIONS, "two peaks of one type");
        m->peak[m->peaks++] = *earlier;
        return;
    }
    double one = fmax(p->flops_one, earlier->flops_one);
    if (earlier->flops > p->flops) *p = *earlier;
    p->flops_one = one;
}

/* Keeps the sizes of the measurement with the larger copies. The bandwidth of a size is the best of
 * all copies of at least this size, because a copy of this size can be as fast as a larger copy. */
static void keep_copies(struct machine *m, const struct machine *earlier)
{
    struct machine further = *m, nearer = *earlier;
    if (!m->copies ||
        (earlier->copies && machine_copy_large(earlier)->bytes > machine_copy_large(m)->bytes)) {
        further = *earlier;
        nearer = *m;
    }
    m->copies = further.copies;
    for (int i = 0; i < further.copies; i++) {
        struct machine_copy *c = &m->copy[i];
        *c = further.copy[i];
        for (int k = 0; k < nearer.copies; k++) {
            if (nearer.copy[k].bytes < c->bytes) continue;
            c->moved = fmax(c->moved, nearer.copy[k].moved);
            c->moved_one = fmax(c->moved_one, nearer.copy[k].moved_one);
        }
    }
    machine_make_ceilings(m);
}

/* All measurements have the same sizes. If the list is full, links of `earlier` with other numbers
 * of ranks are dropped. */
static void keep_links(struct machine *m, const struct machine *earlier)
{
    for (int i = 0; i < earlier->links; i++) {
        const struct machine_link *old = &earlier->link[i];
        int k = 0;
        while (k < m->links && (m->link[k].ranks != old->ranks || m->link[k].bytes != old->bytes))
            k++;
        if (k < m->links)
            m->link[k].sent = fmax(m->link[k].sent, old->sent);
        else if (m->links < MACHINE_LINKS)
            m->link[m->links++] = *old;
    }
}

static void keep_history(struct machine *m, const struct machine *earlier)
{
    struct machine_measurement all[2 * MACHINE_HISTORY];
    int n = earlier->measurements + m->measurements,
        drop = n > MACHINE_HISTORY ? n - MACHINE_HISTORY : 0;
    memcpy(all, earlier->history, (size_t)earlier->measurements * sizeof *all);
    memcpy(all + earlier->measurements, m->history, (size_t)m->measurements * sizeof *all);
    m->measurements = n - drop;
    memcpy(m->history, all + drop, (size_t)m->measurements * sizeof *all);
}

void machine_keep_best(struct machine *m, const struct machine *earlier)
{
    for (int i = 0; i < earlier->peaks; i++) keep_peak(m, &earlier->peak[i]);
    keep_copies(m, earlier);
    keep_links(m, earlier);
    keep_history(m, earlier);
    m->quick = m->quick && earlier->quick;
    m->others = fmin(m->others, earlier->others);
}

int machine_lowest(const struct machine *m, enum machine_precision p, double *ret_low)
{
    int n = 0;
    for (int i = 0; i < m->measurements; i++) {
        double x = p == MACHINE_PRECISIONS ? m->history[i].moved : m->history[i].flops[p];
        if (x > 0) *ret_low = n++ ? fmin(*ret_low, x) : x;
    }
    return n;
}
