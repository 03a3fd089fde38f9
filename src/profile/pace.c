/* Chooses how many steps fit in the time limit, and reports progress. */
#include "profile/collect.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/facts.h"

#include <stdio.h>

enum { STEPS_LEAST = 3, STEPS_MOST = 5000 };
/* Warm-up ends after WARM_SHARE of the limit. Otherwise it goes on until its steps are as many as
 * the options set and have taken WARM_SHARE_OF_PROFILED of the minimum profiled time. */
static const double WARM_SHARE = 0.25, WARM_SHARE_OF_PROFILED = 0.2;
/* A step longer than LONG_MS reports progress every LOOK_MS. The duration of the first step is
 * estimated once SHARE_TO_ESTIMATE of its FLOPs, or one micro-step, is done. A warning is printed
 * if the whole run would take OVER times the limit. */
static const double LONG_MS = 1000, LOOK_MS = 100, SHARE_TO_ESTIMATE = 0.2, OVER = 1.1;

void pace_init(struct pace *p, const struct profile_options *o, const struct engine *e, int warm)
{
    const struct config *c = e->program.config;
    int cold = e->backend->host_memory ? 0 : c->plan.replay == REPLAY_TRUE ? 2 : 1;
    if (warm <= cold) warm = cold + 1; /* else the time of a step is unknown */
    *p = (struct pace){.o = o, .config = c, .start_ns = clock_ns(), .warm = warm, .cold = cold};
    for (int kind = 0; kind < GRAPH_COUNT; kind++)
        if (e->program.built[kind])
            p->step_flops += (double)runs_per_step(c, (enum graph_kind)kind) *
                             plan_cost(&e->program.plan[kind]).flops;
    p->total = (o->warmup > warm ? o->warmup : warm) + 2 * o->steps;
}

static double since(int64_t ns)
{
    return clock_ms(ns, clock_ns());
}

/* The spent part of the limit, without compiling and capturing in the first steps. */
static double spent_ms(const struct pace *p)
{
    return since(p->start_ns) - p->cold_ms;
}

int pace_least(const struct pace *p)
{
    return p->o->steps < STEPS_LEAST ? p->o->steps : STEPS_LEAST;
}

/* The predicted remaining time. Until the number of steps is chosen, it is at most the rest of the
 * limit, but at least the time of the fewest steps. */
static double left_ms(const struct pace *p)
{
    double now = p->step_begun_ns ? since(p->step_begun_ns) : 0;
    int left = p->total > p->done ? p->total - p->done : 0;
    double ms = left * p->step_ms - now, remaining_ms = p->o->limit_ms - spent_ms(p);
    int least = p->warm + pace_least(p) + 1 - p->done;
    if (p->chosen || ms < remaining_ms) return ms > 0 ? ms : 0;
    return remaining_ms > least * p->step_ms ? remaining_ms : least * p->step_ms - now;
}

void pace_show(struct pace *p, const char *what)
{
    double ms = p->step_ms > 0 ? left_ms(p) : -1;
    char text[64];
    if (!p->o->each) return;
    if (p->share > 0) {
        snprintf(text, sizeof text, "%s, %.0f %% of a step", what, 100 * p->share);
        what = text;
    }
    p->o->each(p->o->user, p->done, p->total, 1e-3 * ms, what);
}

/* Warns once, as early as possible, that the limit is too short. */
static void warn_of_limit(struct pace *p)
{
    int least = p->warm + pace_least(p) + 1;
    double all = spent_ms(p) + p->step_ms * (least - p->done - p->share);
    int64_t micro_steps = p->config->train.gradient_accumulation_steps;
    char hint[128] = "";
    if (micro_steps > 1)
        snprintf(
            hint, sizeof hint,
            "; --gradient_accumulation_steps=1 profiles the same kernels in 1/%lld of the time",
            (long long)micro_steps);
    else if (p->config->data.batch_size > 1)
        snprintf(hint, sizeof hint, "; --batch_size=1 takes less time");
    if (p->warned || !(p->o->limit_ms > 0) || all < OVER * p->o->limit_ms) return;
    p->warned = true;
    p->total = least;
    log_info("a step takes about %.3g s; a profile needs at least %d steps, about %.3g s, which "
             "exceeds --limit=%g%s (Ctrl-C stops)",
             1e-3 * p->step_ms, least, 1e-3 * all, 1e-3 * p->o->limit_ms, hint);
}

void pace_begin(struct pace *p, const char *what)
{
    p->step_begun_ns = p->looked_ns = clock_ns();
    p->flops = p->share = 0;
    p->what = what;
    pace_show(p, what);
}

void pace_look(struct pace *p, const struct plan *plan, int node)
{
    p->flops += plan->step[node].cost.flops;
    if (since(p->looked_ns) < LOOK_MS) return;
    double ms = since(p->step_begun_ns);
    p->looked_ns = clock_ns();
    if (ms < LONG_MS || !(p->step_flops > 0)) return;
    p->share = p->flops / p->step_flops;
    double tells = 1.0 / (double)p->config->train.gradient_accumulation_steps;
    if (p->done == 0 && p->share >= (tells < SHARE_TO_ESTIMATE ? tells : SHARE_TO_ESTIMATE)) {
        p->step_ms = ms / p->share;
        warn_of_limit(p);
    }
    pace_show(p, p->what);
}

void pace_end(struct pace *p, double ms)
{
    p->done++;
    p->share = 0;
    p->step_begun_ns = 0;
    if (p->done <= p->cold) {
        p->cold_ms += ms;
        return;
    }
    p->step_ms = ms;
    if (p->done > 1 && !p->chosen) p->warm_ms += ms;
    if (!p->chosen) warn_of_limit(p);
}

bool pace_is_slow(const struct pace *p)
{
    return p->done == 0 || p->step_ms > LONG_MS;
}

/* On a host, too, the first step is not representative, so its time does not count toward the
 * warm-up time (pace_end). */
bool pace_warms(const struct pace *p)
{
    const struct profile_options *o = p->o;
    if (p->done < p->warm) return true;
    bool wanted = p->done < o->warmup || p->warm_ms < WARM_SHARE_OF_PROFILED * o->least_ms;
    double next = p->step_ms * (2 + 2 * pace_least(p));
    return wanted && p->warm_ms < WARM_SHARE * o->limit_ms && spent_ms(p) + next < o->limit_ms;
}

int pace_choose(struct pace *p, int *ret_plain)
{
    const struct profile_options *o = p->o;
    double ms = p->step_ms, remaining_ms = o->limit_ms - spent_ms(p);
    double wanted = ms > 0 ? o->least_ms / ms : 0,
           fit = ms > 0 ? remaining_ms / (2 * ms) : STEPS_MOST;
    if (wanted > STEPS_MOST) wanted = STEPS_MOST;
    if (wanted < o->steps) wanted = o->steps;
    int least = pace_least(p), n = (int)(fit < wanted ? fit : wanted);
    /* If not even the minimum fits, one unprofiled step, so that one comparison is possible. */
    *ret_plain = n < least ? 1 : n;
    n = n < least ? least : n;
    p->chosen = true;
    p->total = p->done + n + *ret_plain;
    return n;
}
