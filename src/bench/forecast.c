#include "bench/forecast.h"

#include "base/host.h"
#include "base/isa.h"
#include "base/threads.h"
#include "bench/bench_engine.h"
#include "bench/call.h"
#include "engine/device.h"
#include "engine/program.h"
#include "engine/tune.h"

/* --- the batch -------------------------------------------------------------------------------- */

static enum status bytes_of(const struct config *c, int64_t vocab, unsigned lines, int64_t *ret)
{
    struct arena a = {0};
    struct program p;
    enum status st = program_for(&p, c, vocab, bench_kinds(c, lines), device_backend(c), &a);
    if (st == ST_OK) *ret = program_bytes(&p);
    arena_release(&a);
    return st;
}

enum status forecast_fit(struct bench_cell *c, int64_t memory_limit, bool lower,
                         unsigned *ret_lines)
{
    static const unsigned update = 1u << BENCH_UPDATE | 1u << BENCH_STEP,
                          inference = 1u << BENCH_INFERENCE;
    const unsigned lines[] = {c->lines, c->lines & ~update, c->lines & inference};
    *ret_lines = memory_limit < 0 ? c->lines : 0;
    threads_set(c->config.plan.threads);
    for (int i = 0; i < COUNT_OF(lines) && !*ret_lines; i++) {
        struct config smaller = c->config;
        int64_t bytes, *batch = &smaller.data.batch_size, least = lower ? 1 : *batch;
        for (; lines[i] && !*ret_lines && *batch >= least; --*batch) {
            TRY(bytes_of(&smaller, c->vocab, lines[i], &bytes));
            if (bytes > memory_limit) continue;
            c->config.data.batch_size = *batch;
            *ret_lines = lines[i];
        }
    }
    return ST_OK;
}

/* --- the time --------------------------------------------------------------------------------- */

bool forecast_guess(struct machine *ret)
{
    static const double bytes_per_s = 8e9;
    int threads = threads_count();
    struct host_clock clock = host_clock_now("/sys/devices/system/cpu", "/proc/cpuinfo", threads);
    double mhz = clock.most_mhz > 0 ? clock.most_mhz : clock.mhz;
    double lanes = isa_allows(ISA_AVX512)                         ? 16
                   : isa_allows(ISA_AVX2)                         ? 8
                   : isa_allows(ISA_SSE2) || isa_allows(ISA_NEON) ? 4
                                                                  : 1;
    if (!(mhz > 0)) return false;
    *ret = (struct machine){.threads = threads, .peaks = 1, .copies = 1};
    ret->peak[0] = (struct machine_peak){MACHINE_F32, .flops = threads * mhz * 1e6 * 2 * lanes};
    ret->copy[0] = (struct machine_copy){.bytes = 1 << 20, .moved = threads * bytes_per_s};
    return true;
}

static double ms_of(const struct program *p, const struct machine *m, enum graph_kind kind,
                    int from, int to)
{
    const struct plan *plan = &p->plan[kind];
    double ms = 0;
    for (int i = from; i < to; i++) {
        const struct step *s = &plan->step[i];
        if (!s->kernel) continue;
        enum machine_precision type = call_precision(&s->call);
        if (!machine_peak(m, type)) type = m->peak[0].precision;
        struct floor f = machine_floor(m, type, s->cost.flops, s->cost.bytes, NAN);
        ms += f.compute_ms + f.memory_ms;
    }
    return ms;
}

static double whole_ms(const struct program *p, const struct machine *m, enum graph_kind kind)
{
    return p->built[kind] ? ms_of(p, m, kind, 0, p->plan[kind].steps) : 0;
}

/* The time of the kernels that bench_engine_step runs for these lines. */
static double lines_ms(const struct program *p, const struct machine *m, unsigned lines)
{
    double micro = whole_ms(p, m, GRAPH_MICRO), forward = 0, ms = 0;
    double more = (double)(p->config->train.gradient_accumulation_steps - 1) *
                  whole_ms(p, m, GRAPH_MICRO_MORE);
    double update = whole_ms(p, m, GRAPH_UPDATE) + whole_ms(p, m, GRAPH_REFRESH);
    if (p->built[GRAPH_MICRO])
        forward = ms_of(p, m, GRAPH_MICRO, 0, plan_backward_start(&p->plan[GRAPH_MICRO]));
    if (lines >> BENCH_INFERENCE & 1) ms += whole_ms(p, m, GRAPH_EVAL);
    if (lines >> BENCH_BACKWARD & 1)
        ms += micro; /* forward runs first */
    else if (lines >> BENCH_FORWARD & 1)
        ms += forward;
    if (lines >> BENCH_BOTH & 1) ms += micro;
    if (lines >> BENCH_STEP & 1) ms += micro + more + update;
    if (lines >> BENCH_UPDATE & 1) ms += update;
    return ms;
}

/* The measured ratio of the time of kernels to the time that their FLOPs and bytes would take at
 * full speed, in steps of models with n_embd 128 to 384, on one thread of an AMD EPYC (AVX-512). */
static const double times_least = 2;

enum status forecast_ms(const struct bench_cell *c, unsigned lines, const struct machine *m,
                        double *ret_ms)
{
    struct arena a = {0};
    struct program p;
    threads_set(c->config.plan.threads);
    enum status st = program_for(&p, &c->config, c->vocab, bench_kinds(&c->config, lines),
                                 device_backend(&c->config), &a);
    if (st == ST_OK) *ret_ms = times_least * (c->warmup + c->steps) * lines_ms(&p, m, lines);
    arena_release(&a);
    return st;
}
