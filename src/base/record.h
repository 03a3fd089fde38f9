/* record.h - a struct as JSON: one table of fields writes it and reads it.
 *
 * Reading is lenient (base/lenient.h), so that older files stay readable: unknown keys are ignored;
 * a missing value, or one of another type, becomes NAN, NULL, -1, false or empty. */
#ifndef BASE_RECORD_H
#define BASE_RECORD_H

#include "base/arena.h"

#include <stddef.h>

struct json_t;

/* The member's type, and its JSON. */
enum field_kind {
    FIELD_TEXT,    /* const char *: text; NULL: null. An empty text is read as NULL. If `most` is
                    * set, an array of `most` bytes: empty: null; longer texts are read as empty */
    FIELD_REAL,    /* double: number; NAN and infinities: null */
    FIELD_WHOLE,   /* double: integer; NAN: null */
    FIELD_INT,     /* int: integer; negative numbers are read as -1 */
    FIELD_INDEX,   /* int: integer; -1: null */
    FIELD_COUNT,   /* int64_t: integer; anything else is read as -1 */
    FIELD_FLAG,    /* bool */
    FIELD_NAME,    /* an enum: one of the `most` texts `names`; other texts are read as -1 */
    FIELD_ONE,     /* a struct with the table `of`: object; null if none of its fields is known */
    FIELD_LIST,    /* pointer to structs with the table `of`; with `most`, an array of `most` */
    FIELD_SERIES,  /* double *: list of FIELD_REAL */
    FIELD_WHOLES,  /* double *: list of FIELD_WHOLE */
    FIELD_TEXTS,   /* const char **: list of texts; other values are skipped */
    FIELD_FIGURES, /* struct figure *: object of numbers; other values are skipped */
};

struct figure {
    const char *name;
    double x;
};

struct record;

struct field {
    const char *name;
    enum field_kind kind;
    int at;                  /* offset of the member */
    int n_at;                /* offset of the int that counts a list's elements */
    int digits;              /* significant digits of a FIELD_REAL; 0: all */
    int most;                /* names of FIELD_NAME; capacity of a list or text in the struct */
    bool sparse;             /* write no key if the number is unknown */
    const struct record *of; /* fields of FIELD_ONE and FIELD_LIST */
    const char *const *names;
};

struct record {
    int64_t size; /* of the struct */
    const struct field *field;
    int fields;
    bool tuple; /* a JSON list of the values without names; a list field takes all that remain */
};

/* A table of fields of the struct that the macro S names: `#define S struct point`, then
 * RECORD(point, F(TEXT, "name", name), F(LIST, "steps", step, N(steps), .of = &step_record)).
 * CHARS: an array of bytes. T: a time, 7 digits. PART: an object for members of the same struct. */
#define F(KIND, key, member, ...)                                                        \
    {                                                                                    \
        .name = key, .kind = FIELD_##KIND, .at = (int)offsetof(S, member), ##__VA_ARGS__ \
    }
#define CHARS(key, member, ...) \
    F(TEXT, key, member, .most = (int)sizeof(((S *)0)->member), ##__VA_ARGS__)
#define T(key, member) F(REAL, key, member, .digits = 7)
#define N(member)      .n_at = (int)offsetof(S, member)
#define PART(key, id)                                      \
    {                                                      \
        .name = key, .kind = FIELD_ONE, .of = &id##_record \
    }
#define RECORD_AS(id, as_tuple, ...)                                                         \
    static const struct field id##_fields[] = {__VA_ARGS__};                                 \
    static const struct record id##_record = {sizeof(S), id##_fields, COUNT_OF(id##_fields), \
                                              as_tuple}
#define RECORD(id, ...) RECORD_AS(id, false, __VA_ARGS__)
#define TUPLE(id, ...)  RECORD_AS(id, true, __VA_ARGS__)

/* The caller releases it with json_decref. */
struct json_t *record_json(const struct record *r, const void *from);
/* Adds the fields to an object, and returns it. */
struct json_t *record_add(struct json_t *object, const struct record *r, const void *from);
/* {"iter": [...], "loss": [...]}: one array per field, with its values in a list of structs. */
struct json_t *record_columns(const struct record *r, const void *list, int n);
/* Writes `,"key":value` for each number and flag to `line`, which has `bytes` bytes; returns the
 * length, as snprintf does. Allocates nothing. */
int record_line(const struct record *r, const void *from, char *line, int bytes);
/* Fills the struct at `to`; texts and lists live in the arena. `from` may be NULL or any value. */
void record_take(const struct record *r, const struct json_t *from, void *to, struct arena *a);
/* Copies reals and texts that `to` lacks (NAN, NULL) from `from`. */
void record_fill(const struct record *r, void *to, const void *from);

#endif
