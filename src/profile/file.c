#include "profile/file.h"

#include "backend/backend.h"
#include "base/json.h"
#include "base/own.h"
#include "engine/environment.h"
#include "engine/facts.h"
#include "engine/memory.h"
#include "profile/words.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERSION = 1, DIGITS = 15, TIME_DIGITS = 7 };

/* Rounds a time to TIME_DIGITS digits: more are noise, and the file is shorter. */
static double rounded(double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.*g", TIME_DIGITS, x);
    return strtod(text, NULL);
}

/* FLOPs and bytes are whole numbers and keep all digits. */
static json_t *whole(double x)
{
    return json_integer((json_int_t)(x + 0.5));
}

static json_t *stats_json(const struct stats *s)
{
    return json_pack("{s:i, s:f, s:f, s:f, s:f, s:f, s:f}", "n", s->n, "median", rounded(s->median),
                     "mean", rounded(s->mean), "std", rounded(s->std), "min", rounded(s->min),
                     "max", rounded(s->max), "p95", rounded(s->p95));
}

static json_t *phases_json(const double *ms)
{
    json_t *j = json_object();
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        json_object_set_new(j, phase_name((enum phase)phase), json_real(rounded(ms[phase])));
    return j;
}

static json_t *threads_json(const struct profile_row *r)
{
    if (!(r->busy_ms > 0)) return json_null();
    return json_pack("{s:f, s:f}", "busy_ms", rounded(r->busy_ms), "busiest_ms",
                     rounded(r->busiest_ms));
}

static json_t *counters_json(const struct profile_row *r)
{
    const struct kernel_counters *c = &r->counters;
    if (!r->counted) return json_null();
    return json_pack("{s:o, s:o, s:o, s:f, s:f, s:f}", "dram_read", whole(c->dram_read),
                     "dram_written", whole(c->dram_written), "dram_of_node", whole(r->work_dram),
                     "tensor_active", rounded(c->tensor_active), "sm_active", rounded(c->sm_active),
                     "dram_busy", rounded(c->dram_busy));
}

static json_t *count_or_null(bool known, int64_t x)
{
    return known ? json_integer((json_int_t)x) : json_null();
}

static json_t *launch_json(const struct profile *p, const struct profile_row *r)
{
    const struct step_launch *l = r->launch;
    if (!l) return json_null();
    const struct planned_launch *k = &l->launch;
    const struct occupancy_limits *limits = occupancy_limits(p->engine->program.target->arch);
    bool compiled = k->registers >= 0, runs = l->known && l->occupancy.blocks;
    return json_pack("{s:I, s:I, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "blocks",
                     (json_int_t)l->blocks, "threads", (json_int_t)l->threads, "registers",
                     count_or_null(compiled, k->registers), "static_bytes",
                     count_or_null(compiled, k->static_bytes), "dynamic_bytes",
                     (json_int_t)k->shape.shared_bytes, "sm_blocks",
                     count_or_null(l->known, l->occupancy.blocks), "sm_warps",
                     count_or_null(l->known, l->occupancy.warps), "sm_warps_most",
                     count_or_null(limits, limits ? limits->warps : 0), "limit",
                     text_or_null(l->known ? l->occupancy.limit : NULL), "waves",
                     number_or_null(runs ? rounded(l->grid.waves) : NAN), "tail",
                     number_or_null(runs ? rounded(l->grid.tail) : NAN));
}

static json_t *node_json(const struct profile_row *r)
{
    if (r->node < 0) return json_pack("{s:n, s:n}", "plan", "node");
    json_t *j = json_pack("{s:s, s:i}", "plan", graph_kind_name(r->kind), "node", r->node);
    json_object_set_new(j, "op", json_string(op_def(r->op)->name));
    json_object_set_new(j, "dtype", json_string(dtype_name(r->dtype)));
    json_object_set_new(j, "peak_of", json_string(machine_precision_name(r->precision)));
    json_object_set_new(j, "shape", json_string(r->shape));
    json_object_set_new(j, "types", json_string(r->types));
    return j;
}

static void set_what(json_t *j, const struct profile_row *r)
{
    json_object_set_new(j, "phase", json_string(phase_name(r->phase)));
    json_object_set_new(j, "layer",
                        r->range.layer < 0 ? json_null() : json_integer(r->range.layer));
    json_object_set_new(j, "scope", json_string(r->scope));
    json_object_set_new(j, "range", texts_json(r->range.word, r->range.words));
    json_object_set_new(j, "family", json_string(family_name(r->family)));
    json_object_set_new(j, "kernel", json_string(r->variant));
    json_object_set_new(j, "device_kernel", text_or_null(r->device_kernel));
    json_object_set_new(j, "flops", whole(r->cost.flops));
    json_object_set_new(j, "bytes", whole(r->cost.bytes));
}

/* A number for each chunk of steps. */
static json_t *chunks_json(const struct profile *p, const double *step_ms, bool plain)
{
    json_t *j = json_array();
    for (int i = 0; i < p->chunks; i++)
        json_array_append_new(j, number_or_null(rounded(profile_chunk_ms(p, i, step_ms, plain))));
    return j;
}

static json_t *turns_json(const struct profile *p)
{
    json_t *turn = json_array();
    for (int i = 0; i < p->chunks; i++) json_array_append_new(turn, json_integer(p->chunk[i].turn));
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o}", "of", p->turns_of ? json_integer(p->turns_of) : json_null(),
        "turn", turn, "plain_ms", chunks_json(p, p->plain_step_ms, true), "step_ms",
        chunks_json(p, p->whole_step_ms, false), "idle_ms", chunks_json(p, p->idle_step_ms, false));
}

static json_t *row_json(const struct profile *p, const struct profile_row *r)
{
    struct stats ms = stats_of(r->run_ms, r->runs);
    json_t *j = node_json(r);
    set_what(j, r);
    json_object_set_new(j, "floor_ms", json_real(rounded(r->floor_ms)));
    json_object_set_new(j, "bound", json_string(bound_name(r->bound)));
    json_object_set_new(j, "per_step", json_real(rounded((double)r->runs / p->steps)));
    json_object_set_new(j, "ms_per_step", json_real(rounded(r->ms)));
    json_object_set_new(j, "std_per_step",
                        p->steps > 1 ? json_real(rounded(stats_of(r->step_ms, p->steps).std))
                                     : json_null());
    json_object_set_new(j, "chunk_ms", chunks_json(p, r->step_ms, false));
    json_object_set_new(j, "work_ms_per_step", json_real(rounded(r->work_ms)));
    json_object_set_new(j, "hidden_ms_per_step", json_real(rounded(r->hidden_ms)));
    json_object_set_new(j, "run_ms", stats_json(&ms));
    json_object_set_new(j, "threads", threads_json(r));
    json_object_set_new(j, "counters", counters_json(r));
    json_object_set_new(j, "launch", launch_json(p, r));
    return j;
}

static json_t *rows_json(const struct profile *p)
{
    json_t *j = json_array();
    for (int i = 0; i < p->rows; i++) json_array_append_new(j, row_json(p, &p->row[i]));
    return j;
}

static json_t *timeline_json(const struct profile *p)
{
    json_t *all = json_array();
    for (int i = 0; i < p->moments; i++) {
        const struct profile_moment *m = &p->moment[i];
        json_array_append_new(all, json_pack("[i, f, f, i]", m->row, rounded(m->start_us),
                                             rounded(m->end_us), m->lane));
    }
    return all;
}

/* The first row of a node; -1: none. */
static int row_of(const struct profile *p, enum graph_kind kind, int node)
{
    for (int i = 0; i < p->rows; i++)
        if (p->row[i].kind == kind && p->row[i].node == node) return i;
    return -1;
}

static json_t *memory_json(const struct profile *p)
{
    struct arena a = {0};
    struct memory_course c;
    json_t *parts = json_array(), *moments = json_array();
    memory_course(&p->engine->program, &c, &a);
    for (int part = 0; part < MEMORY_PARTS; part++)
        json_array_append_new(parts, json_string(memory_part_id((enum memory_part)part)));
    for (int i = 0; i < c.moments; i++) {
        const struct memory_moment *m = &c.moment[i];
        json_t *one = json_pack("[i]", row_of(p, m->kind, m->step));
        for (int part = 0; part < MEMORY_PARTS; part++)
            json_array_append_new(one, json_integer(m->bytes[part]));
        json_array_append_new(moments, one);
    }
    json_t *j = json_pack("{s:I, s:i, s:o, s:o}", "total_bytes", (json_int_t)c.total, "peak",
                          c.peak, "parts", parts, "moments", moments);
    arena_release(&a);
    return j;
}

static json_t *idle_json(const struct profile *p)
{
    struct stats s = stats_of(p->idle_step_ms, p->steps);
    return json_pack("{s:I, s:f, s:o, s:o}", "gaps_per_step", (json_int_t)p->gaps, "ms_per_step",
                     s.mean, "phases", phases_json(p->idle_ms), "step_ms", stats_json(&s));
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

static json_t *words_json(const struct profile *p)
{
    struct arena a = {0};
    struct profile_words w = {0};
    json_t *j = json_array();
    words_of(p, &w, &a);
    for (int i = 0; i < w.words; i++)
        json_array_append_new(
            j, json_pack("{s:s, s:s}", "about", w.word[i].about, "text", w.word[i].text));
    arena_release(&a);
    return j;
}

static void set_how(json_t *j, const struct profile *p)
{
    json_object_set_new(j, "times_by", json_string(profile_times_name(p->by)));
    json_object_set_new(j, "times_why", text_or_null(p->why));
    json_object_set_new(j, "traced_by", text_or_null(p->traced_by));
    json_object_set_new(j, "replay", json_boolean(p->replay));
    json_object_set_new(j, "warmup", json_integer(p->warmup));
    json_object_set_new(j, "steps", json_integer(p->steps));
    json_object_set_new(j, "step_ms", stats_json(&p->step_ms));
    json_object_set_new(j, "plain_step_ms", stats_json(&p->plain_ms));
    json_object_set_new(j, "chunks", turns_json(p));
    json_object_set_new(j, "overhead", json_real(rounded(p->overhead)));
    json_object_set_new(j, "overhead_half",
                        json_pack("[f, f]", rounded(p->overhead_low), rounded(p->overhead_high)));
    json_object_set_new(j, "host_ms_per_step", json_real(rounded(p->host_ms)));
    json_object_set_new(j, "others_busy", json_real(rounded(p->others)));
    json_object_set_new(j, "processors", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    json_object_set_new(j, "dropped", json_integer(p->dropped));
    json_object_set_new(j, "unmatched", json_integer(p->unmatched));
    json_object_set_new(j, "dropped_why", text_or_null(p->dropped_why));
    json_object_set_new(j, "counted", json_integer(p->counted));
    json_object_set_new(j, "counters_why", text_or_null(p->counters_why));
}

json_t *profile_json(const struct profile *p, const char *version)
{
    struct arena a = {0};
    struct environment now;
    struct facts facts = facts_of(&p->engine->program);
    environment_gather(&now, &a);
    json_t *j =
        json_pack("{s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:i}", "v", VERSION, "version", version,
                  "date", now.date, "device", p->engine->backend->name, "config",
                  config_json(p->engine->program.config), "plan", facts_json(&facts), "machine",
                  p->machine ? machine_json(p->machine) : json_null(), "threads", p->threads);
    BUG_IF(!j, "a profile is not valid JSON");
    json_object_set_new(j, "commit", text_or_null(p->commit));
    json_object_set_new(j, "command", text_or_null(p->command));
    set_how(j, p);
    json_object_set_new(j, "phase_ms", phases_json(p->mean_ms));
    json_object_set_new(j, "idle", idle_json(p));
    json_object_set_new(j, "communication", communication_json(p));
    json_object_set_new(j, "words", words_json(p));
    json_object_set_new(j, "rows", rows_json(p));
    json_object_set_new(j, "timeline",
                        json_pack("{s:i, s:s, s:o}", "step", p->shown_step, "fields",
                                  "row, start_us, end_us, lane", "moments", timeline_json(p)));
    json_object_set_new(j, "memory", memory_json(p));
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
