/* The file of records: {"v":1, "machines":[record, ...]}, newest last. */
#include "backend/communicator.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "base/trust.h"
#include "machine/machine_parts.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum { FILE_VERSION = 1, RECORDS_MOST = 32 };

const char *machine_precision_name(enum machine_precision p)
{
    static const char *const names[] = {
        [MACHINE_F32] = "f32", [MACHINE_TF32] = "tf32", [MACHINE_BF16] = "bf16"};
    return names[p];
}

bool machine_same(const struct machine *m, const struct machine *other)
{
    return m->gpu == other->gpu && m->threads == other->threads && !strcmp(m->name, other->name) &&
           !strcmp(m->isa, other->isa) && !strcmp(m->library, other->library);
}

static json_t *peak_json(const struct machine_peak *p)
{
    return json_pack("{s:s, s:f, s:f, s:I, s:I, s:I, s:s}", "dtype",
                     machine_precision_name(p->precision), "flops_per_s", p->flops,
                     "flops_per_s_one_thread", p->flops_one, "M", (json_int_t)p->M, "N",
                     (json_int_t)p->N, "K", (json_int_t)p->K, "kernel", p->kernel);
}

static json_t *copy_json(const struct machine_copy *c)
{
    return json_pack("{s:I, s:f, s:f}", "bytes_per_thread", (json_int_t)c->bytes, "bytes_per_s",
                     c->moved, "bytes_per_s_one_thread", c->moved_one);
}

static json_t *link_json(const struct machine_link *l)
{
    return json_pack("{s:i, s:I, s:f}", "ranks", l->ranks, "bytes", (json_int_t)l->bytes,
                     "bytes_per_s", l->sent);
}

static json_t *measurement_json(const struct machine_measurement *x)
{
    json_t *flops = json_object();
    for (int p = 0; p < MACHINE_PRECISIONS; p++)
        if (x->flops[p] > 0)
            json_object_set_new(flops, machine_precision_name((enum machine_precision)p),
                                json_real(x->flops[p]));
    return json_pack("{s:s, s:b, s:f, s:o, s:f}", "date", x->date, "quick", (int)x->quick, "others",
                     x->others, "flops_per_s", flops, "bytes_per_s", x->moved);
}

struct json_t *machine_json(const struct machine *m)
{
    json_t *peaks = json_array(), *copies = json_array(), *history = json_array();
    json_t *links = json_array();
    for (int i = 0; i < m->links; i++) json_array_append_new(links, link_json(&m->link[i]));
    for (int i = 0; i < m->pasts; i++)
        json_array_append_new(history, measurement_json(&m->past[i]));
    for (int i = 0; i < m->peaks; i++) json_array_append_new(peaks, peak_json(&m->peak[i]));
    for (int i = 0; i < m->copies; i++) json_array_append_new(copies, copy_json(&m->copy[i]));
    json_t *j = json_pack("{s:s, s:s, s:s, s:i, s:s, s:b, s:f, s:I, s:o, s:o, s:o, s:o}",
                          m->gpu ? "gpu" : "cpu", m->name, "isa", m->isa, "library", m->library,
                          "threads", m->threads, "date", m->date, "quick", (int)m->quick, "others",
                          m->others, "l2_bytes", (json_int_t)m->cache_bytes, "products", peaks,
                          "copies", copies, "links", links, "history", history);
    BUG_IF(!j, "a machine record is not valid JSON");
    return j;
}

static const char *text_of(const json_t *j, const char *key, struct arena *a)
{
    const char *text = json_string_value(json_object_get(j, key));
    return text ? arena_strdup(a, text) : NULL;
}

/* A positive, finite number; 0 for anything else. */
static double number_of(const json_t *j, const char *key)
{
    double x = json_number_value(json_object_get(j, key));
    return isfinite(x) && x > 0 ? x : 0;
}

static int64_t count_of(const json_t *j, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(j, key));
    return n > 0 ? (int64_t)n : 0;
}

static bool read_peak(const json_t *j, struct machine_peak *p, struct arena *a)
{
    const char *dtype = json_string_value(json_object_get(j, "dtype"));
    *p = (struct machine_peak){.precision = MACHINE_PRECISIONS};
    for (int i = 0; dtype && i < MACHINE_PRECISIONS; i++)
        if (!strcmp(dtype, machine_precision_name((enum machine_precision)i)))
            p->precision = (enum machine_precision)i;
    p->flops = number_of(j, "flops_per_s");
    p->flops_one = number_of(j, "flops_per_s_one_thread");
    p->M = count_of(j, "M"), p->N = count_of(j, "N"), p->K = count_of(j, "K");
    p->kernel = text_of(j, "kernel", a);
    return p->precision != MACHINE_PRECISIONS && p->flops > 0 && p->flops_one > 0 && p->kernel;
}

static bool read_copy(const json_t *j, struct machine_copy *c)
{
    c->bytes = count_of(j, "bytes_per_thread");
    c->moved = number_of(j, "bytes_per_s");
    c->moved_one = number_of(j, "bytes_per_s_one_thread");
    return c->bytes > 0 && c->moved > 0 && c->moved_one > 0;
}

static bool read_link(const json_t *j, struct machine_link *l)
{
    int64_t ranks = count_of(j, "ranks");
    *l = (struct machine_link){.bytes = count_of(j, "bytes"), .sent = number_of(j, "bytes_per_s")};
    if (ranks > 1 && ranks <= RANKS_MOST) l->ranks = (int)ranks;
    return l->ranks && l->bytes > 0 && l->sent > 0;
}

static bool read_lists(const json_t *j, struct machine *m, struct arena *a)
{
    const json_t *peaks = json_object_get(j, "products"), *copies = json_object_get(j, "copies");
    if (json_array_size(peaks) > MACHINE_PRECISIONS || json_array_size(copies) > MACHINE_COPIES)
        return false;
    while (m->peaks < (int)json_array_size(peaks)) {
        const json_t *one = json_array_get(peaks, (size_t)m->peaks);
        if (!read_peak(one, &m->peak[m->peaks++], a)) return false;
    }
    while (m->copies < (int)json_array_size(copies)) {
        const json_t *one = json_array_get(copies, (size_t)m->copies);
        if (!read_copy(one, &m->copy[m->copies++])) return false;
        if (m->copies > 1 && m->copy[m->copies - 2].bytes >= m->copy[m->copies - 1].bytes)
            return false;
    }
    const json_t *links = json_object_get(j, "links"); /* older records have none */
    if (json_array_size(links) > MACHINE_LINKS) return false;
    while (m->links < (int)json_array_size(links)) {
        const json_t *one = json_array_get(links, (size_t)m->links);
        struct machine_link *l = &m->link[m->links++];
        if (!read_link(one, l)) return false;
        if (m->links > 1 && l[-1].ranks == l->ranks && l[-1].bytes >= l->bytes) return false;
    }
    return m->peaks > 0 && m->copies > 0;
}

/* A record of an older version has no history; the record itself becomes the only measurement. */
static bool read_history(const json_t *j, struct machine *m, struct arena *a)
{
    const json_t *history = json_object_get(j, "history"), *one;
    size_t i;
    if (json_array_size(history) > MACHINE_HISTORY) return false;
    json_array_foreach(history, i, one) {
        const json_t *flops = json_object_get(one, "flops_per_s");
        struct machine_measurement *x = &m->past[m->pasts++];
        *x = (struct machine_measurement){.date = text_of(one, "date", a),
                                          .quick = json_is_true(json_object_get(one, "quick")),
                                          .others = number_of(one, "others"),
                                          .moved = number_of(one, "bytes_per_s")};
        for (int p = 0; p < MACHINE_PRECISIONS; p++)
            x->flops[p] = number_of(flops, machine_precision_name((enum machine_precision)p));
        if (!x->date) return false;
    }
    if (!m->pasts) machine_note(m);
    return true;
}

/* False if a member is missing or invalid; the caller then ignores the record. */
static bool read_record(const json_t *j, struct machine *m, struct arena *a)
{
    *m = (struct machine){.name = text_of(j, "gpu", a), .isa = text_of(j, "isa", a)};
    m->gpu = m->name != NULL;
    if (!m->gpu) m->name = text_of(j, "cpu", a);
    m->library = text_of(j, "library", a);
    m->date = text_of(j, "date", a);
    m->threads = (int)count_of(j, "threads");
    m->quick = json_is_true(json_object_get(j, "quick"));
    m->others = number_of(j, "others");
    m->cache_bytes = count_of(j, "l2_bytes");
    return m->name && m->isa && m->library && m->date && m->threads > 0 && read_lists(j, m, a) &&
           read_history(j, m, a);
}

enum status machine_records(const char *path, struct json_t **ret, struct json_t **ret_records,
                            struct arena *a)
{
    char *text;
    int64_t size;
    json_t *file = NULL;
    bool exists = file_exists(path);
    if (exists) {
        TRY(file_read(path, a, &text, &size));
        file = json_loadb(text, (size_t)size, 0, NULL);
    }
    json_t *records = json_object_get(file, "machines");
    if (json_integer_value(json_object_get(file, "v")) != FILE_VERSION || !json_is_array(records)) {
        if (exists) log_warning("%s is damaged or has another version; it will be replaced", path);
        json_decref(file);
        records = json_array();
        file = json_pack("{s:i, s:o}", "v", FILE_VERSION, "machines", records);
    }
    *ret = file;
    *ret_records = records;
    return ST_OK;
}

bool machine_read(struct machine *m, const char *path, struct arena *a)
{
    json_t *records, *file;
    struct machine record;
    /* machine_write says why it is not kept. */
    if (trust_check(path, a, &path) != ST_OK) return false;
    if (machine_records(path, &file, &records, a) != ST_OK) {
        log_warning("the peaks of this machine cannot be read: %s", fail_message());
        return false;
    }
    bool found = false;
    for (size_t i = json_array_size(records); i > 0 && !found; i--)
        found = read_record(json_array_get(records, i - 1), &record, a) && machine_same(&record, m);
    if (found) {
        record.device = m->device;
        *m = record;
    }
    json_decref(file);
    return found;
}

/* Removes invalid records, records of the same machine after merging them into `m` unless `forget`
 * is set, and the oldest records above the limit. */
static void drop_old(json_t *records, struct machine *m, bool forget, struct arena *a)
{
    struct machine record;
    for (size_t i = json_array_size(records); i > 0; i--) {
        bool valid = read_record(json_array_get(records, i - 1), &record, a);
        if (valid && !machine_same(&record, m)) continue;
        if (valid && !forget) machine_keep_best(m, &record);
        json_array_remove(records, i - 1);
    }
    while (json_array_size(records) >= RECORDS_MOST) json_array_remove(records, 0);
}

enum status machine_write(struct machine *m, const char *path, bool forget, struct arena *a)
{
    json_t *records, *file;
    TRY(trust_parent(path, a, &path));
    TRY(machine_records(path, &file, &records, a));
    drop_old(records, m, forget, a);
    json_array_append_new(records, machine_json(m));
    return trust_write_json(file, JSON_INDENT(1) | JSON_REAL_PRECISION(6), path);
}
