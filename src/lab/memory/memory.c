#include "lab/memory/memory.h"

#include "base/rng.h"
#include "base/stats.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

int memory_sizes(int64_t smallest, int64_t largest, int64_t grain, int64_t ret[MEMORY_SIZES])
{
    enum { IN_OCTAVE = 4, SIXTEENTHS = 16 };
    int n = 0;
    for (int i = 0; n < MEMORY_SIZES; i++) {
        double exact = (double)smallest * exp2((double)i / IN_OCTAVE);
        int64_t power = INT64_C(1) << (int)floor(log2(exact) + 1e-9);
        int64_t step = max_i64(grain, power / SIXTEENTHS);
        int64_t size = (int64_t)(exact / (double)step + 0.5) * step;
        if (size > largest) break;
        if (n == 0 || size > ret[n - 1]) ret[n++] = size;
    }
    return n;
}

/* A random permutation of n elements that is one cycle. */
static void cycle(uint32_t *ret, int64_t n, uint32_t seed, uint32_t sequence)
{
    for (int64_t i = 0; i < n; i++) ret[i] = (uint32_t)i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t k = rng_below(seed, RNG_TEST, sequence, (uint64_t)i, i);
        uint32_t other = ret[k];
        ret[k] = ret[i];
        ret[i] = other;
    }
}

/* Each group is a cycle, but the element that would lead back to the first element of its group
 * leads to the next group instead. */
void memory_cycle(uint32_t *ret, int64_t n, int64_t group, uint32_t seed)
{
    struct arena scratch = {0};
    int64_t groups = ceil_div(n, group);
    uint32_t *next = ARENA_NEW(&scratch, uint32_t, groups);
    cycle(next, groups, seed, 0);
    for (int64_t g = 0; g < groups; g++) {
        int64_t first = g * group, elements = min_i64(group, n - first);
        uint32_t *of = ret + first;
        cycle(of, elements, seed, 1 + (uint32_t)g);
        for (int64_t i = 0; i < elements; i++)
            of[i] = of[i] ? of[i] + (uint32_t)first : (uint32_t)(next[g] * group);
    }
    arena_release(&scratch);
}

uint32_t memory_sum(uint64_t first, uint64_t end)
{
    if (end == first) return 0;
    uint64_t n = end - first, twice = first + end - 1; /* n * twice / 2 is the sum of indices */
    return memory_word(n % 2 ? n * (twice / 2) : n / 2 * twice);
}

/* --- levels ----------------------------------------------------------------------------------- */

/* The working sets of `from` ... `to` bytes, inclusive. */
struct window {
    int64_t from, to;
};

static double median_in(const struct memory_run *r, const double *y, struct window w)
{
    double x[MEMORY_SIZES];
    int n = 0;
    for (int i = 0; i < r->sizes; i++)
        if (r->size[i] >= w.from && r->size[i] <= w.to && isfinite(y[i])) x[n++] = y[i];
    return n ? stats_of(x, n).median : NAN;
}

/* The median, within a window, of the curve of one unit or of all units whose name begins with
 * `name`. */
static double rate_in(const struct memory_run *r, const char *name, bool one, struct window w)
{
    for (int i = 0; i < r->curves; i++) {
        const struct memory_curve *c = &r->curve[i];
        bool fits = c->units == (one ? 1 : r->units);
        if (fits && !strncmp(c->name, name, strlen(name))) return median_in(r, c->rate, w);
    }
    return NAN;
}

/* If `sharing` units share a cache, their working sets must fit into the cache together. */
static struct window shared_window(const struct memory_run *r, struct window w, int sharing)
{
    int64_t by = min_i64(max_i64(sharing, 1), max_i64(r->units, 1));
    return (struct window){w.from, max_i64(w.from, w.to / by)};
}

static void set_rates(const struct memory_run *r, struct memory_level *l, struct window one,
                      struct window all)
{
    l->ns = median_in(r, r->ns, one);
    l->clocks = median_in(r, r->clocks, one);
    l->rate = rate_in(r, "read, ", false, all);
    l->write_rate = rate_in(r, "write, ", false, all);
    l->copy_rate = rate_in(r, "copy, ", false, all);
    l->unit_rate = r->gpu ? l->rate / r->units : rate_in(r, "read, ", true, one);
    l->clock_bytes = r->gpu ? median_in(r, r->clock_bytes, all) : l->unit_rate / r->clock_hz;
}

static const char *not_reached(const struct memory_run *r, struct arena *a)
{
    char largest[32];
    return arena_printf(a, "not reached by the largest working set, %s",
                        str_bytes(largest, (double)r->size[r->sizes - 1]));
}

static void add_cache(struct memory_run *r, int c, const int *match, struct arena *a)
{
    const struct memory_cache *k = &r->cache[c];
    struct memory_level *l = &r->level[r->levels++];
    int p = match[c];
    struct window w = {c ? r->cache[c - 1].bytes + 1 : 0, k->bytes};
    *l = (struct memory_level){.name = k->name, .bytes = k->bytes};
    if (k->sharing == 1) l->unit_bytes = k->bytes;
    if (k->sharing < r->cores) l->bytes = k->bytes * ceil_div(r->cores, k->sharing);
    if (p >= 0) {
        w = (struct window){r->size[r->plateau[p].first], r->size[r->plateau[p].last]};
        l->found = w.to;
    } else if (r->size[r->sizes - 1] < w.from) {
        l->note = not_reached(r, a);
    } else {
        l->note = arena_strdup(a, "its end is not seen in the latency; taken as reported");
    }
    set_rates(r, l, w, shared_window(r, w, k->sharing));
    if (r->gpu && k->sharing > 1) { /* L2: if each SM had its own set, all sets would not fit */
        const struct window same = {max_i64(w.from, 1 << 20), k->bytes / 2};
        l->rate = rate_in(r, "read the same, ", false, same);
        l->unit_rate = l->rate / r->units;
        l->clock_bytes = l->unit_rate / r->clock_hz;
        l->copy_rate = r->l2_copy_rate;
        const struct window parts = {0, k->bytes / 2 / r->units};
        l->write_rate = rate_in(r, "write, ", false, parts);
    }
    if (r->gpu && k->sharing == 1) l->write_rate = l->copy_rate = NAN; /* L1: writes go to L2 */
}

/* Adds the level of the memory. Its working sets are those from twice the last cache on or, if the
 * last plateau begins after the last cache, those of the plateau. */
static void add_memory(struct memory_run *r, const char *name, struct arena *a)
{
    struct memory_level *l = &r->level[r->levels++];
    const struct memory_cache *last = r->caches ? &r->cache[r->caches - 1] : NULL;
    int64_t from = last ? 2 * last->bytes : 0;
    if (r->plateaus) {
        int64_t begins = r->size[r->plateau[r->plateaus - 1].first];
        if (!last || begins > last->bytes) from = begins;
    }
    *l = (struct memory_level){.name = name, .bytes = r->facts.bytes};
    struct window one = {from, INT64_MAX};
    int64_t sharing = last ? min_i64(last->sharing, r->units) : 1;
    struct window all = {
        r->gpu || sharing > 1 ? ceil_div(2 * (last ? last->bytes : 0), sharing) : from, INT64_MAX};
    set_rates(r, l, one, all);
    if (r->size[r->sizes - 1] < from) l->note = not_reached(r, a);
}

/* If the system reports no caches, all plateaus except the last become caches L1, L2, ... */
static void name_plateaus(struct memory_run *r, struct arena *a)
{
    for (int i = 0; i + 1 < r->plateaus && i < CACHES_MOST; i++)
        r->cache[r->caches++] =
            (struct memory_cache){arena_printf(a, "L%d", i + 1), r->size[r->plateau[i].last], 1};
}

void memory_set_levels(struct memory_run *r, struct arena *a)
{
    int match[CACHES_MOST];
    bool reported = r->caches > 0;
    r->plateaus = memory_plateaus(r->size, r->ns, r->sizes, r->plateau);
    if (!reported) name_plateaus(r, a);
    memory_match(r->size, r->plateau, r->plateaus, r->cache, r->caches, match);
    for (int c = 0; c < r->caches; c++) {
        add_cache(r, c, match, a);
        struct memory_level *l = &r->level[r->levels - 1];
        if (!reported) l->bytes = l->unit_bytes = 0;
    }
    add_memory(r, !r->gpu ? "DRAM" : r->facts.memory_bits >= 1024 ? "HBM" : "device memory", a);
}

/* Drops the last sizes, for which nothing was measured before Ctrl-C. */
static void drop_missing(struct memory_run *r)
{
    bool found = false;
    for (; r->sizes > 0 && !found; r->sizes -= !found) {
        int last = r->sizes - 1;
        found = isfinite(r->ns[last]);
        for (int c = 0; c < r->curves; c++) found |= isfinite(r->curve[c].rate[last]);
    }
}

enum status memory_measure(const struct memory_options *o, struct memory_run *ret, struct arena *a)
{
    *ret = (struct memory_run){.options = o, .clock_hz = NAN};
    ret->gpu = o->device.backend->texts != NULL;
    TRY(o->device.backend->devices.describe(o->device.number, &ret->facts));
    for (int i = 0; i < MEMORY_SIZES; i++) ret->ns[i] = ret->clocks[i] = ret->clock_bytes[i] = NAN;
    for (int c = 0; c < MEMORY_CURVES; c++)
        for (int i = 0; i < MEMORY_SIZES; i++) ret->curve[c].rate[i] = NAN;
    enum status st = ret->gpu ? memory_run_gpu(ret, a) : memory_run_cpu(ret, a);
    ret->stopped = st == ST_INTERRUPTED;
    if (ret->stopped) drop_missing(ret);
    if (!ret->stopped || !ret->sizes) TRY(st);
    memory_set_levels(ret, a);
    if (ret->host_link.name) ret->level[ret->levels++] = ret->host_link;
    return ST_OK;
}
