/* strobe memory CONFIG: where the memory of training goes, step by step, before anything runs. */
#include "base/clock.h"
#include "base/own.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/planned.h"
#include "engine/fit.h"
#include "view/memory_view.h"

#include <string.h>

struct options {
    const char *backend, *tuning, *phase, *svg;
    struct table_form form;
    bool measure, timeline;
    int64_t vocab, rows;
};

static enum status check(const struct options *o, struct memory_view *v)
{
    int extent = 0;
    while (extent < EXTENTS && strcmp(memory_extent_name((enum memory_extent)extent), o->phase))
        extent++;
    if (extent == EXTENTS)
        return fail(ST_USAGE, "--phase must be inference, backward or step; found %s", o->phase);
    v->extent = (enum memory_extent)extent;
    if (o->rows < 0 || o->rows > 1000000) return fail(ST_USAGE, "--rows must be 0 to 1000000");
    if (o->measure && o->backend)
        return fail(ST_USAGE, "--measure runs on the device of the configuration; set --device "
                              "and leave --backend out");
    v->rows = o->rows;
    return table_form_check(&o->form);
}

struct waiting {
    struct progress progress;
    int64_t start_ns;
};

/* Planning a large model for each recompute setting takes seconds. */
static void show(void *user, int done, int all)
{
    struct waiting *w = user;
    if (clock_ms(w->start_ns, clock_ns()) < 1000) return;
    if (!w->progress.what) progress_start(&w->progress, "memory", done, all);
    progress_show(&w->progress, done, "recompute");
}

/* Fills the view with everything that plans know. */
static enum status look(struct planned *p, struct memory_view *v, const struct options *o,
                        struct arena *a)
{
    unsigned kinds = memory_kinds(&p->config, v->extent);
    TRY(planned_plan(p, kinds, o->backend));
    const struct target *target = p->program.target;
    const struct tuning *tuning = p->program.tuning;
    v->program = &p->program;
    v->config = &p->config;
    v->vocab = p->vocab;
    v->words = planned_words(p);
    memory_course(&p->program, &v->course, a);
    memory_tensors(&p->program, &v->course.moment[v->course.peak], &v->largest, a);
    int64_t layers = model_layers(&p->config.model);
    v->block = v->extent == EXTENT_INFERENCE || !layers ? -1 : (int)layers / 2;
    if (v->block >= 0) {
        memory_saved(&p->program, v->block, &v->saved, a);
        struct waiting w = {.start_ns = clock_ns()};
        enum status st = memory_variants(&p->config, p->vocab, kinds, target, tuning, v->limit,
                                         show, &w, v->variant, &v->variants);
        if (w.progress.what) progress_end(&w.progress);
        TRY(st);
    }
    for (int i = 0; i < v->variants; i++)
        if (v->variant[i].recompute == p->config.plan.recompute) v->batch = v->variant[i].batch;
    if (v->limit && !v->variants)
        TRY(fit_batch(&p->config, p->vocab, kinds, target, tuning, v->limit, &v->batch));
    bool updates = kinds >> GRAPH_UPDATE & 1;
    if (v->limit && v->course.total > v->limit && updates)
        TRY(fit_ranks(&p->config, p->vocab, kinds, target, tuning, v->limit, &v->ranks,
                      &v->of_rank));
    return ST_OK;
}

static void print(const struct memory_view *v, const struct options *o, struct arena *a)
{
    struct str s = {0};
    if (o->form.json) {
        json_print(memory_view_json(v, a), &s);
    } else if (o->timeline) {
        struct table t = memory_view_timeline(v, a);
        table_form_print(&o->form, &t, &s);
    } else {
        memory_view_print(v, &o->form, &s, a);
    }
    command_print(&s);
}

static enum status run(struct planned *p, struct memory_view *v, const struct options *o,
                       struct arena *a)
{
    TRY(look(p, v, o, a));
    if (o->measure) TRY(memory_run(v->config, v->vocab, v->extent, &v->run));
    v->was_run = o->measure;
    print(v, o, a);
    if (!o->svg) return ST_OK;
    struct markup picture = {0};
    memory_plot_svg(v, &picture, a);
    return output_draw(o->svg, &picture, true);
}

enum status cmd_memory(int argc, char **argv, struct arena *a)
{
    struct options o = {.phase = "step", .rows = 12};
    struct memory_view v = {0};
    const struct opt options[] = {
        {"phase", OPT_TEXT, &o.phase, "PHASE",
         "inference (the loss only), backward (includes forward) or step (default: step)"},
        {"limit", OPT_SIZE, &v.limit, "SIZE",
         "as in 80GiB: whether it fits, and the largest batch_size that does"},
        {"measure", OPT_FLAG, &o.measure, NULL, "run two steps, and say what they really took"},
        {"rows", OPT_INT, &o.rows, "N", "how many of the largest tensors to list (default: 12)"},
        {"svg", OPT_TEXT, &o.svg, "FILE", "the timeline as a picture, too"},
        {"backend", OPT_TEXT, &o.backend, "NAME",
         "backend whose kernels to plan (default: the one that would train)"},
        {"vocab", OPT_INT, &o.vocab, "N", "size of the vocabulary (that of the data set)"},
        PLANNED_TUNING(&o.tuning),
        {"timeline", OPT_FLAG, &o.timeline, NULL,
         "print the timeline alone, a row for each kernel"},
        TABLE_FORM_OPTIONS(&o.form),
        {0},
    };
    struct planned p;
    TRY(opt_parse(options, &argc, argv, config_is_key));
    TRY(check(&o, &v));
    if (o.svg) TRY(own_check_writable(o.svg, OWN_PICTURE));
    TRY(planned_read(&p, argc, argv, o.vocab, o.tuning, a));
    return run(&p, &v, &o, a);
}
