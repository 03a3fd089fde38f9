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

static struct figure *phases_of(const double *ms, struct arena *a)
{
    struct figure *of = ARENA_NEW(a, struct figure, PHASE_COUNT);
    for (int i = 0; i < PHASE_COUNT; i++) of[i] = (struct figure){phase_name((enum phase)i), ms[i]};
    return of;
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
    struct profile_file_chunks c = {n, n, n, n, .of = p->turns_of ? (double)p->turns_of : NAN};
    c.turn = ARENA_NEW(a, double, n);
    for (int i = 0; i < n; i++) c.turn[i] = (double)p->chunk[i].turn;
    c.plain_ms = profile_chunks_ms(p, p->plain_step_ms, true, a);
    c.step_ms = profile_chunks_ms(p, p->whole_step_ms, false, a);
    c.idle_ms = profile_chunks_ms(p, p->idle_step_ms, false, a);
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
            collectives, json_pack("{s:s, s:s, s:I, s:f, s:f, s:o, s:o}", "name", x->name, "op",
                                   op_def(x->op)->name, "bytes", (json_int_t)x->bytes, "link_bytes",
                                   x->link_bytes, "ms", rounded(x->ms), "waited_ms",
                                   number_or_null(x->waited_ms), "ceiling_bytes_per_s",
                                   number_or_null(x->ceiling > 0 ? rounded(x->ceiling) : NAN)));
    }
    for (int r = 0; r < c->seen && c->seen == c->ranks; r++)
        json_array_append_new(waited, json_real(rounded(c->rank[r].waited_ms)));
    return json_pack("{s:f, s:f, s:f, s:o, s:o}", "ms", rounded(c->all_ms), "hidden_ms",
                     rounded(c->hidden_ms), "exposed_ms", rounded(c->exposed_ms), "waited_ms",
                     waited, "collectives", collectives);
}

/* The rows, the timeline, and the sentences. */
static void add_lists(struct profile_file *f, const struct profile *p, struct arena *a)
{
    struct profile_words w = words_of(p, a);
    f->answer = w.word;
    f->answers = w.words;
    f->row = p->row;
    f->rows = p->rows;
    f->moment = p->moment;
    f->moments = p->moments;
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
        .step_ms = p->step_ms,
        .plain_step_ms = p->plain_ms,
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
        .idle_step_ms = idle,
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
