/* strobe ladder CONFIG: what fusion, bf16, flash attention and a padded vocabulary each gain; of
 * several ranks, what each way to sum gradients gains. */
#include "cli/command.h"
#include "cli/device.h"
#include "cli/output.h"
#include "cli/planned.h"
#include "suite/announce.h"
#include "suite/suites.h"
#include "view/ceilings.h"
#include "view/ladder_view.h"

struct options {
    struct ladder_options run;
    struct table_form form;
    int64_t vocab;
};

static enum status run(int argc, char **argv, struct options *o, struct arena *a)
{
    struct config c;
    struct device device;
    struct machine m;
    struct ladder l;
    struct progress progress;
    TRY(command_read_config(&c, argc, argv, true, a));
    TRY(suite_check_ladder(&c, argv, argc));
    TRY(model_check(&c));
    TRY(machine_choose(&c, NULL, false, a)); /* each rung sets its own */
    TRY(planned_vocabulary(&c, o->vocab, &o->run.vocab, a));
    if (c.train.gradient_accumulation_steps > 1 && c.ranks.count == 1)
        log_info("a step has %lld micro-batches; to time one, add --gradient_accumulation_steps=1",
                 (long long)c.train.gradient_accumulation_steps);
    TRY(device_prepare(&c, &device));
    TRY(ceilings_get(&m, &device, a));
    o->run.room = device_room(&device);
    o->run.config = &c;
    o->run.machine = &m;
    o->run.begin = announce_ladder;
    o->run.each = progress_share;
    o->run.user = &progress;
    progress_start(&progress, "ladder", 0, PROGRESS_WHOLE);
    enum status st = ladder_run(&o->run, &l, a);
    progress_end(&progress);
    TRY(st);
    load_warn(l.others);
    struct ladder_view view = {&l, &c, o->run.vocab, &m};
    struct str s = {0};
    ladder_view_print(&view, &o->form, &s, a);
    command_print(&s);
    return ST_OK;
}

enum status cmd_ladder(int argc, char **argv, struct arena *a)
{
    struct options o = {0};
    struct effort effort = {"steps", 20, 100000, 60, 0, 1000000};
    const struct opt options[] = {
        {"steps", OPT_INT, &effort.samples, "N",
         "measured steps of each rung; the median is reported (default: 20)"},
        {"limit", OPT_INT, &effort.limit, "SECONDS",
         "time for one rung: slow ones run fewer steps, at least 3, or 1 if 3 exceed it (default: "
         "60)"},
        {"vocab", OPT_INT, &o.vocab, "N", "size of the vocabulary (default: of the data set)"},
        TABLE_FORM_OPTIONS(&o.form),
        {0},
    };
    TRY(opt_parse(options, &argc, argv, config_is_key));
    TRY(table_form_check(&o.form));
    TRY(effort_read(&effort, &o.run.steps, &o.run.limit_ms, NULL));
    return run(argc, argv, &o, a);
}
