#include "suite/announce.h"

#include "base/log.h"
#include "base/str.h"
#include "bench/forecast.h"
#include "engine/device.h"
#include "view/ceilings.h"

#include <math.h>

enum status announce_open(struct announce *x, const struct suite_request *r, struct sheet *sheet,
                          struct arena *a)
{
    struct device d;
    bool small;
    TRY(suite_device(r, &d));
    TRY(suite_is_small(r, &small));
    *x = (struct announce){.request = r, .lower = !small, .sheet = sheet, .a = a};
    x->host = d.backend->host_memory;
    if (!x->host) return ST_OK;
    for (int i = 0; i < r->words; i++) x->lower &= !suite_word_sets(r->word[i], "batch_size");
    x->room = suite_free_memory(r, &d, 0);
    if (!r->limit && x->room > 0) x->room = x->room / 10 * 9; /* the rest is for other programs */
    if (ceilings_find(&x->machine, &d, a) && x->machine.peaks && x->machine.copies) return ST_OK;
    x->guessed = forecast_guess(&x->machine);
    if (!x->guessed) x->machine = (struct machine){0};
    return ST_OK;
}

/* A cell that has no plan has no time; running it says why. */
static bool no_plan(enum status st)
{
    return st == ST_UNSUPPORTED || st == ST_MEMORY;
}

enum status announce_cell(struct announce *x, const char *name, struct bench_cell *c, double times)
{
    double ms = 0;
    int64_t batch = c->config.data.batch_size;
    unsigned lines;
    if (!x->host || c->reason) return ST_OK;
    enum status st = forecast_fit(c, x->room, x->lower, &lines);
    if (st == ST_OK && lines && x->machine.peaks) st = forecast_ms(c, lines, &x->machine, &ms);
    if (no_plan(st)) return ST_OK;
    TRY(st);
    x->ms += times * ms;
    if (c->config.data.batch_size == batch) return ST_OK;
    char there[32];
    const char *words = arena_printf(
        x->a, "%s: batch_size=%lld instead of %lld, the largest that fits in %s of memory", name,
        (long long)c->config.data.batch_size, (long long)batch, str_bytes(there, (double)x->room));
    log_info("%s", words);
    sheet_note(x->sheet, arena_printf(x->a, "%s.", words));
    return ST_OK;
}

const char *announce_duration(double ms, struct arena *a)
{
    static const struct {
        const char *unit;
        double seconds, below; /* this unit is used below so many of it */
    } units[] = {{"second", 1, 90}, {"minute", 60, 90}, {"hour", 3600, 48}, {"day", 86400, 1e18}};
    for (int i = 0;; i++) {
        double n = fmax(1, round(1e-3 * ms / units[i].seconds));
        if (n >= units[i].below) continue;
        return arena_printf(a, "about %.0f %s%s", n, units[i].unit, n > 1 ? "s" : "");
    }
}

void announce_print(const struct announce *x)
{
    if (!x->host) return;
    if (!x->machine.peaks)
        log_info("expected duration: not known, because neither the peaks of this machine nor its "
                 "clock are; `strobe machine` measures the peaks");
    else
        log_info("expected duration: %s%s", announce_duration(x->ms, x->a),
                 x->guessed
                     ? ", a guess from the clock of the processor, because its peaks are not "
                       "measured (`strobe machine`); Ctrl-C stops"
                     : " if no other program is busy; Ctrl-C stops");
}

static const char *free_words(const struct ladder *l, struct arena *a)
{
    char room[32];
    return l->room < 0 ? "" : arena_printf(a, ", of %s free", str_bytes(room, (double)l->room));
}

void announce_ladder(const struct ladder *l)
{
    enum { FEW_SECONDS_MS = 5000 };
    struct arena a = {0};
    char all[32], room[32];
    int refused = 0;
    for (int i = 0; i < l->rungs; i++) refused += l->rung[i].reason != NULL;
    if (l->batch_that_fits)
        log_info("batch_size=%lld: some rungs need more than the %s of memory that are free and "
                 "are left out; --batch_size=%lld is the largest with which they fit",
                 (long long)l->rung[0].config.data.batch_size, str_bytes(room, (double)l->room),
                 (long long)l->batch_that_fits);
    if (l->expected_ms > FEW_SECONDS_MS) {
        log_info("batch_size=%lld: %d rungs, %s; together they need %s of memory%s",
                 (long long)l->rung[0].config.data.batch_size, l->rungs - refused,
                 l->order == LADDER_IN_TURN ? "in turn" : "one after the other",
                 str_bytes(all, (double)l->bytes), free_words(l, &a));
        log_info("expected duration: %s if no other program is busy; Ctrl-C stops",
                 announce_duration(l->expected_ms, &a));
    }
    arena_release(&a);
}
