/* record.h - a struct as JSON: one table of fields writes it and reads it.
 *
 * Reading is lenient (base/lenient.h): unknown keys are ignored; what is missing or of another type
 * is NAN, NULL, -1, false or empty. So older files stay readable, and the caller checks what it
 * needs. */
#ifndef BASE_RECORD_H
#define BASE_RECORD_H

#include "base/arena.h"

#include <stddef.h>

struct json_t;

/* The member's type, and its JSON. */
enum field_kind {
    FIELD_TEXT,    /* const char *: text; NULL: null. An empty text is read as NULL. `most`: an
                    * array of so many bytes instead; empty: null; longer ones are read as empty */
    FIELD_REAL,    /* double: number; NAN and infinities: null */
    FIELD_WHOLE,   /* double: integer; NAN: null */
    FIELD_INT,     /* int: integer; negative ones are read as -1 */
    FIELD_INDEX,   /* int: integer; -1: null */
    FIELD_COUNT,   /* int64_t: integer; others are read as -1 */
    FIELD_FLAG,    /* bool */
    FIELD_NAME,    /* an enum: its name, of the `most` texts `names`; others are read as -1 */
    FIELD_ONE,     /* the struct of `of`: object; null if nothing in it is known */
    FIELD_LIST,    /* pointer to structs of `of`; `most`: an array of so many instead */
    FIELD_SERIES,  /* double *: list of FIELD_REAL */
    FIELD_WHOLES,  /* double *: list of FIELD_WHOLE */
    FIELD_TEXTS,   /* const char **: list of texts; others are left out */
    FIELD_FIGURES, /* struct figure *: object of numbers; others are left out */
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
    int n_at;                /* of pointers: offset of their count, an int */
    int digits;              /* of reals: more are noise; 0: all */
    int most;                /* of FIELD_NAME, and of lists and texts within the struct */
    bool sparse;             /* no key unless the number is known */
    const struct record *of; /* of FIELD_ONE, FIELD_LIST */
    const char *const *names;
};

struct record {
    int64_t size; /* of the struct */
    const struct field *field;
    int fields;
    bool tuple; /* a list of the values without names; a list within has the rest of it */
};

/* A table of fields of the struct that the macro S names: `#define S struct point`, then
 * RECORD(point, F(TEXT, "name", name), F(LIST, "steps", step, N(steps), .of = &step_record)).
 * CHARS: an array of bytes. T: a time, whose digits beyond the seventh are noise. PART: an object
 * whose fields are members of the same struct. */
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
/* {"iter": [...], "loss": [...]} of a list of structs: an array for each field. */
struct json_t *record_columns(const struct record *r, const void *list, int n);
/* `,"key":value` for each number and flag, into a part of a line of `bytes` bytes; returns the
 * length, as snprintf does. Allocates nothing. */
int record_line(const struct record *r, const void *from, char *line, int bytes);
/* Fills the struct at `to`; texts and lists live in the arena. `from`: any value, also NULL. */
void record_take(const struct record *r, const struct json_t *from, void *to, struct arena *a);
/* Sets the reals and texts of `to` that are not known to those of `from`. */
void record_fill(const struct record *r, void *to, const void *from);

#endif
