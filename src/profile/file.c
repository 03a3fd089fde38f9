#include "profile/file.h"

#include "backend/backend.h"
#include "base/json.h"
#include "base/own.h"
#include "base/record.h"
#include "engine/environment.h"
#include "engine/facts.h"
#include "engine/memory.h"
#include "profile/words.h"
#include "result/profile_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIGITS = 15 };

static struct profile_file_times times_of(const struct stats *s)
{
    return (struct profile_file_times){s->n, s->median, s->mean, s->std, s->min, s->max, s->p95};
}

static struct figure *phases_of(const double *ms, struct arena *a)
{
    struct figure *of = ARENA_NEW(a, struct figure, PHASE_COUNT);
    for (int i = 0; i < PHASE_COUNT; i++) of[i] = (struct figure){phase_name((enum phase)i), ms[i]};
    return of;
}

static double known(bool known, double x)
{
    return known ? x : NAN;
}

static struct profile_file_launch launch_of(const struct profile *p, const struct step_launch *l)
{
    if (!l)
        return (struct profile_file_launch){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NULL, NAN, NAN};
    const struct planned_launch *k = &l->launch;
    const struct occupancy_limits *limits = occupancy_limits(p->engine->program.target->arch);
    bool compiled = k->registers >= 0, runs = l->known && l->occupancy.blocks;
    return (struct profile_file_launch){
        .blocks = (double)l->blocks,
        .threads = (double)l->threads,
        .registers = known(compiled, k->registers),
        .static_bytes = known(compiled, (double)k->static_bytes),
        .dynamic_bytes = (double)k->shape.shared_bytes,
        .sm_blocks = known(l->known, l->occupancy.blocks),
        .sm_warps = known(l->known, l->occupancy.warps),
        .sm_warps_most = limits ? limits->warps : NAN,
        .limit = l->known ? l->occupancy.limit : NULL,
        .waves = known(runs, l->grid.waves),
        .tail = known(runs, l->grid.tail),
    };
}

/* A number for each chunk of steps. */
static double *chunks_of(const struct profile *p, const double *step_ms, bool plain,
                         struct arena *a)
{
    double *ms = ARENA_NEW(a, double, p->chunks);
    for (int i = 0; i < p->chunks; i++) ms[i] = profile_chunk_ms(p, i, step_ms, plain);
    return ms;
}

static struct profile_file_row row_of(const struct profile *p, const struct profile_row *r,
                                      struct arena *a)
{
    struct stats run_ms = stats_of(r->run_ms, r->runs);
    const struct kernel_counters *c = &r->counters;
    bool is_node = r->node >= 0, observed = r->busy_ms > 0;
    return (struct profile_file_row){
        .plan = is_node ? graph_kind_name(r->kind) : NULL,
        .node = r->node,
        .op = is_node ? op_def(r->op)->name : NULL,
        .dtype = is_node ? dtype_name(r->dtype) : NULL,
        .peak_of = is_node ? machine_precision_name(r->precision) : NULL,
        .shape = is_node ? r->shape : NULL,
        .types = is_node ? r->types : NULL,
        .phase = phase_name(r->phase),
        .layer = r->range.layer,
        .scope = r->scope,
        .word = (const char **)r->range.word,
        .words = r->range.words,
        .family_name = family_name(r->family),
        .variant = r->variant,
        .device_kernel = r->device_kernel,
        .flops = r->cost.flops,
        .bytes = r->cost.bytes,
        .floor_ms = r->floor_ms,
        .bound = bound_name(r->bound),
        .per_step = (double)r->runs / p->steps,
        .ms = r->ms,
        .std = known(p->steps > 1, stats_of(r->step_ms, p->steps).std),
        .chunk_ms = chunks_of(p, r->step_ms, false, a),
        .chunks = p->chunks,
        .work_ms = r->work_ms,
        .hidden_ms = r->hidden_ms,
        .run_ms = times_of(&run_ms),
        .busy_ms = known(observed, r->busy_ms),
        .busiest_ms = known(observed, r->busiest_ms),
        .dram_read = known(r->counted, c->dram_read),
        .dram_written = known(r->counted, c->dram_written),
        .dram_of_node = known(r->counted, r->work_dram),
        .tensor_active = known(r->counted, c->tensor_active),
        .sm_active = known(r->counted, c->sm_active),
        .dram_busy = known(r->counted, c->dram_busy),
        .launch = launch_of(p, r->launch),
    };
}

/* The first row of a node; -1: none. */
static int row_of_node(const struct profile *p, enum graph_kind kind, int node)
{
    for (int i = 0; i < p->rows; i++)
        if (p->row[i].kind == kind && p->row[i].node == node) return i;
    return -1;
}

static struct profile_file_memory memory_of(const struct profile *p, struct arena *a)
{
    struct memory_course c;
    memory_course(&p->engine->program, &c, a);
    struct profile_file_memory m = {.parts = MEMORY_PARTS, .columns = c.moments, .peak = c.peak};
    const char **part = ARENA_NEW(a, const char *, MEMORY_PARTS);
    for (int i = 0; i < MEMORY_PARTS; i++) part[i] = memory_part_id((enum memory_part)i);
    m.part = part;
    m.total = (double)c.total;
    m.column = ARENA_NEW(a, struct profile_file_column, c.moments);
    for (int i = 0; i < c.moments; i++) {
        const struct memory_moment *from = &c.moment[i];
        struct profile_file_column *to = &m.column[i];
        *to = (struct profile_file_column){.row = row_of_node(p, from->kind, from->step)};
        to->parts = MEMORY_PARTS;
        to->bytes = ARENA_NEW(a, double, MEMORY_PARTS);
        for (int k = 0; k < MEMORY_PARTS; k++) to->bytes[k] = (double)from->bytes[k];
    }
    return m;
}

static struct profile_file_chunks turns_of(const struct profile *p, struct arena *a)
{
    int n = p->chunks;
    struct profile_file_chunks c = {n, n, n, n, .of = known(p->turns_of, (double)p->turns_of)};
    c.turn = ARENA_NEW(a, double, n);
    for (int i = 0; i < n; i++) c.turn[i] = (double)p->chunk[i].turn;
    c.plain_ms = chunks_of(p, p->plain_step_ms, true, a);
    c.step_ms = chunks_of(p, p->whole_step_ms, false, a);
    c.idle_ms = chunks_of(p, p->idle_step_ms, false, a);
    return c;
}

static double rounded(double x)
{
    enum { TIME_DIGITS = 7 };
    char text[32];
    snprintf(text, sizeof text, "%.*g", TIME_DIGITS, x);
    return strtod(text, NULL);
}

static json_t *communication_json(const struct profile *p)
{
    const struct profile_communication *c = p->communication;
    if (!c) return json_null();
    json_t *collectives = json_array(), *waited = json_array();
    for (int i = 0; i < c->collectives; i++) {
        const struct profile_collective *x = &c->collective[i];
        json_array_append_new(
            collectives, json_pack("{s:s, s:s, s:I, s:f, s:f, s:f, s:o}", "name", x->name, "op",
                                   op_def(x->op)->name, "bytes", (json_int_t)x->bytes, "link_bytes",
                                   x->link_bytes, "ms", rounded(x->ms), "waited_ms",
                                   rounded(x->waited_ms), "ceiling_bytes_per_s",
                                   number_or_null(x->ceiling > 0 ? rounded(x->ceiling) : NAN)));
    }
    for (int r = 0; r < c->ranks; r++)
        json_array_append_new(waited, json_real(rounded(c->rank[r].waited_ms)));
    return json_pack("{s:f, s:f, s:f, s:o, s:o}", "ms", rounded(c->all_ms), "hidden_ms",
                     rounded(c->hidden_ms), "exposed_ms", rounded(c->exposed_ms), "waited_ms",
                     waited, "collectives", collectives);
}

/* The rows, the timeline, and the sentences. */
static void add_lists(struct profile_file *f, const struct profile *p, struct arena *a)
{
    struct profile_words w = {0};
    words_of(p, &w, a);
    f->answer = ARENA_NEW(a, struct profile_file_answer, w.words);
    for (; f->answers < w.words; f->answers++)
        f->answer[f->answers] =
            (struct profile_file_answer){w.word[f->answers].about, w.word[f->answers].text};
    f->row = ARENA_NEW(a, struct profile_file_row, p->rows);
    for (; f->rows < p->rows; f->rows++) f->row[f->rows] = row_of(p, &p->row[f->rows], a);
    f->moment = ARENA_NEW(a, struct profile_file_moment, p->moments);
    for (; f->moments < p->moments; f->moments++) {
        const struct profile_moment *m = &p->moment[f->moments];
        f->moment[f->moments] =
            (struct profile_file_moment){m->row, m->lane, m->start_us, m->end_us};
    }
}

static struct profile_file file_of(const struct profile *p, const char *version, struct arena *a)
{
    struct environment *now = ARENA_NEW(a, struct environment, 1);
    struct stats idle = stats_of(p->idle_step_ms, p->steps);
    double *half = ARENA_NEW(a, double, 2);
    environment_gather(now, a);
    half[0] = p->overhead_low, half[1] = p->overhead_high;
    struct profile_file f = {
        .v = PROFILE_FILE_VERSION,
        .version = version,
        .date = now->date,
        .device = p->engine->backend->name,
        .threads = p->threads,
        .commit = p->commit,
        .command = p->command,
        .times_by = profile_times_name(p->by),
        .times_why = p->why,
        .traced_by = p->traced_by,
        .replay = p->replay,
        .warmup = p->warmup,
        .steps = p->steps,
        .step_ms = times_of(&p->step_ms),
        .plain_step_ms = times_of(&p->plain_ms),
        .chunks = turns_of(p, a),
        .overhead = p->overhead,
        .overhead_half = half,
        .halves = 2,
        .host_ms = p->host_ms,
        .others = p->others,
        .processors = (double)sysconf(_SC_NPROCESSORS_ONLN),
        .dropped = (double)p->dropped,
        .unmatched = (double)p->unmatched,
        .dropped_why = p->dropped_why,
        .counted = p->counted,
        .counters_why = p->counters_why,
        .phase_ms = phases_of(p->mean_ms, a),
        .phase_n = PHASE_COUNT,
        .gaps = (double)p->gaps,
        .idle_ms = idle.mean,
        .phase_idle_ms = phases_of(p->idle_ms, a),
        .phase_idle_n = PHASE_COUNT,
        .idle_step_ms = times_of(&idle),
        .shown = p->shown_step,
        .moment_fields = "row, start_us, end_us, lane",
        .memory = memory_of(p, a),
    };
    add_lists(&f, p, a);
    return f;
}

json_t *profile_json(const struct profile *p, const char *version)
{
    struct arena a = {0};
    struct profile_file f = file_of(p, version, &a);
    struct facts facts = facts_of(&p->engine->program);
    json_t *j = record_json(profile_file_record, &f);
    json_object_set_new(j, "config", config_json(p->engine->program.config));
    json_object_set_new(j, "plan", facts_json(&facts));
    json_object_set_new(j, "machine", p->machine ? machine_json(p->machine) : json_null());
    json_object_set_new(j, "communication", communication_json(p));
    arena_release(&a);
    return j;
}

enum status profile_write(const struct profile *p, const char *version, const char *path)
{
    json_t *j = profile_json(p, version);
    char *text = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
    BUG_IF(!text, "a profile is not valid JSON");
    enum status st = file_make_parent(path);
    if (st == ST_OK) st = own_write(path, OWN_PROFILE, text, (int64_t)strlen(text));
    free(text);
    json_decref(j);
    return st;
}
