/* The file of records: {"v":1, "machines":[record, ...]}, newest last. */
#include "backend/communicator.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/lenient.h"
#include "base/log.h"
#include "base/record.h"
#include "base/trust.h"
#include "machine/machine_parts.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum { FILE_VERSION = 1, RECORDS_MOST = 32 };

static const char *const precisions[MACHINE_PRECISIONS] = {
    [MACHINE_F32] = "f32", [MACHINE_TF32] = "tf32", [MACHINE_BF16] = "bf16"};

const char *machine_precision_name(enum machine_precision p)
{
    return precisions[p];
}

bool machine_same(const struct machine *m, const struct machine *other)
{
    return m->gpu == other->gpu && m->threads == other->threads && !strcmp(m->name, other->name) &&
           !strcmp(m->isa, other->isa) && !strcmp(m->library, other->library);
}

/* clang-format off */
#define S struct machine_peak
RECORD(peak, F(NAME, "dtype", precision, .names = precisions, .most = MACHINE_PRECISIONS),
       F(REAL, "flops_per_s", flops), F(REAL, "flops_per_s_one_thread", flops_one),
       F(COUNT, "M", M), F(COUNT, "N", N), F(COUNT, "K", K), F(TEXT, "kernel", kernel));
#undef S
#define S struct machine_copy
RECORD(copy, F(COUNT, "bytes_per_thread", bytes), F(REAL, "bytes_per_s", moved),
       F(REAL, "bytes_per_s_one_thread", moved_one));
#undef S
#define S struct machine_link
RECORD(link, F(INT, "ranks", ranks), F(COUNT, "bytes", bytes), F(REAL, "bytes_per_s", sent));
#undef S
#define S struct machine_measurement
RECORD(flops, F(REAL, "f32", flops[MACHINE_F32], .sparse = true),
       F(REAL, "tf32", flops[MACHINE_TF32], .sparse = true),
       F(REAL, "bf16", flops[MACHINE_BF16], .sparse = true));
RECORD(past, F(TEXT, "date", date), F(FLAG, "quick", quick), F(REAL, "others", others),
       PART("flops_per_s", flops), F(REAL, "bytes_per_s", moved));
#undef S
#define S struct machine
#define ARRAY(key, member, n, id, limit) \
    F(LIST, key, member, N(n), .of = &id##_record, .most = limit)
RECORD(machine, F(TEXT, "isa", isa), F(TEXT, "library", library), F(INT, "threads", threads),
       F(TEXT, "date", date), F(FLAG, "quick", quick), F(REAL, "others", others),
       F(COUNT, "l2_bytes", cache_bytes),
       ARRAY("products", peak, peaks, peak, MACHINE_PRECISIONS),
       ARRAY("copies", copy, copies, copy, MACHINE_COPIES),
       ARRAY("links", link, links, link, MACHINE_LINKS),
       ARRAY("history", history, measurements, past, MACHINE_HISTORY));
#undef S
/* clang-format on */

struct json_t *machine_json(const struct machine *m)
{
    json_t *j = json_pack("{s:s}", m->gpu ? "gpu" : "cpu", m->name);
    BUG_IF(!j, "a machine record is not valid JSON");
    return record_add(j, &machine_record, m);
}

static bool is_valid(const struct machine *m)
{
    bool valid = m->name && m->isa && m->library && m->date && m->threads > 0 && m->peaks > 0 &&
                 m->copies > 0;
    for (const struct machine_peak *p = m->peak; p < m->peak + m->peaks; p++)
        valid = valid && (int)p->precision >= 0 && p->flops > 0 && p->flops_one > 0 && p->kernel;
    for (const struct machine_copy *c = m->copy; c < m->copy + m->copies; c++)
        valid =
            valid && c->bytes > (c > m->copy ? c[-1].bytes : 0) && c->moved > 0 && c->moved_one > 0;
    for (const struct machine_link *l = m->link; l < m->link + m->links; l++) {
        bool rises = l == m->link || l[-1].ranks != l->ranks || l[-1].bytes < l->bytes;
        valid =
            valid && rises && l->ranks > 1 && l->ranks <= RANKS_MOST && l->bytes > 0 && l->sent > 0;
    }
    for (const struct machine_measurement *x = m->history; x < m->history + m->measurements; x++)
        valid = valid && x->date;
    return valid;
}

/* False if a member is missing or invalid; the caller then ignores the record. */
static bool read_record(const json_t *j, struct machine *m, struct arena *a)
{
    *m = (struct machine){.name = lenient_text(j, "gpu", a)};
    record_take(&machine_record, j, m, a);
    m->gpu = m->name != NULL;
    if (!m->gpu) m->name = lenient_text(j, "cpu", a);
    if (!is_valid(m)) return false;
    if (!m->measurements) machine_start_history(m); /* an older record has no history */
    return true;
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
    /* machine_write says why an untrusted file is not used. */
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

const char *machine_path(struct arena *a)
{
    const char *folder = file_cache_folder(a);
    return folder ? arena_printf(a, "%s/machine.json", folder) : NULL;
}

/* Removes three kinds of records: invalid records; records of the same machine, which are first
 * merged into `m` unless `forget` is set; and the oldest records above the limit. */
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
