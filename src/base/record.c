#include "base/record.h"

#include "base/json.h"
#include "base/lenient.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The member of a type at an address. */
#define AT(type, p) (*(type *)(p))

/* --- writing ---------------------------------------------------------------------------------- */

static json_t *real(double x, int digits)
{
    char text[32];
    if (!digits || !isfinite(x)) return number_or_null(x);
    snprintf(text, sizeof text, "%.*g", digits, x);
    return json_real(strtod(text, NULL));
}

static json_t *whole_number(double x)
{
    /* A double counts exactly up to 2^53. */
    return fabs(x) < 0x1p53 ? json_integer((json_int_t)round(x)) : number_or_null(x);
}

static json_t *figures_json(const struct figure *figure, int n, int digits)
{
    json_t *j = json_object();
    for (int i = 0; i < n; i++) json_object_set_new(j, figure[i].name, real(figure[i].x, digits));
    return j;
}

static json_t *one_json(const struct record *r, const void *from)
{
    json_t *j = record_json(r, from), *value;
    const char *name;
    bool known = r->tuple;
    json_object_foreach(j, name, value) known |= !json_is_null(value);
    if (known) return j;
    json_decref(j);
    return json_null();
}

static json_t *list_json(const struct field *f, const char *from)
{
    const void *list = f->most ? from + f->at : AT(const void *const, from + f->at);
    int n = AT(const int, from + f->n_at);
    if (f->kind == FIELD_FIGURES) return figures_json(list, n, f->digits);
    json_t *j = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(
            j, f->kind == FIELD_SERIES   ? real(((const double *)list)[i], f->digits)
               : f->kind == FIELD_WHOLES ? whole_number(((const double *)list)[i])
               : f->kind == FIELD_TEXTS  ? text_or_null(((const char *const *)list)[i])
                                        : record_json(f->of, (const char *)list + i * f->of->size));
    return j;
}

static json_t *value_json(const struct field *f, const char *from)
{
    const void *at = from + f->at;
    switch (f->kind) {
    case FIELD_TEXT:
        if (f->most) return text_or_null(*(const char *)at ? at : NULL);
        return text_or_null(AT(const char *const, at));
    case FIELD_REAL:
        return real(AT(const double, at), f->digits);
    case FIELD_WHOLE:
        return whole_number(AT(const double, at));
    case FIELD_INT:
        return json_integer(AT(const int, at));
    case FIELD_INDEX:
        return AT(const int, at) < 0 ? json_null() : json_integer(AT(const int, at));
    case FIELD_COUNT:
        return json_integer(AT(const int64_t, at));
    case FIELD_FLAG:
        return json_boolean(AT(const bool, at));
    case FIELD_NAME:
        return json_string(f->names[AT(const int, at)]);
    case FIELD_ONE:
        return one_json(f->of, at);
    default:
        return list_json(f, from);
    }
}

json_t *record_add(json_t *j, const struct record *r, const void *from)
{
    for (const struct field *f = r->field; f < r->field + r->fields; f++) {
        json_t *value = value_json(f, from);
        if (!r->tuple && !(f->sparse && json_is_null(value)))
            json_object_set(j, f->name, value);
        else if (r->tuple && json_is_array(value))
            json_array_extend(j, value);
        else if (r->tuple)
            json_array_append(j, value);
        json_decref(value);
    }
    return j;
}

json_t *record_json(const struct record *r, const void *from)
{
    return record_add(r->tuple ? json_array() : json_object(), r, from);
}

json_t *record_columns(const struct record *r, const void *list, int n)
{
    json_t *j = json_object();
    for (const struct field *f = r->field; f < r->field + r->fields; f++) {
        json_t *column = json_array();
        for (int i = 0; i < n; i++)
            json_array_append_new(column, value_json(f, (const char *)list + i * r->size));
        json_object_set_new(j, f->name, column);
    }
    return j;
}

int record_line(const struct record *r, const void *from, char *line, int bytes)
{
    int n = 0;
    for (const struct field *f = r->field; f < r->field + r->fields; f++) {
        const void *at = (const char *)from + f->at;
        char value[32];
        double x = f->kind == FIELD_COUNT || f->kind == FIELD_FLAG ? 0 : AT(const double, at);
        if (f->sparse && !isfinite(x)) continue;
        if (f->kind == FIELD_COUNT)
            snprintf(value, sizeof value, "%lld", (long long)AT(const int64_t, at));
        else if (f->kind == FIELD_FLAG)
            snprintf(value, sizeof value, AT(const bool, at) ? "true" : "false");
        else if (f->kind == FIELD_WHOLE)
            snprintf(value, sizeof value, isfinite(x) ? "%.0f" : "null", x);
        else
            snprintf(value, sizeof value, isfinite(x) ? "%.*g" : "null", f->digits, x);
        n += snprintf(line + (n < bytes ? n : bytes), n < bytes ? (size_t)(bytes - n) : 0,
                      ",\"%s\":%s", f->name, value);
    }
    return n;
}

/* --- reading ---------------------------------------------------------------------------------- */

static double number(const json_t *j)
{
    return json_is_number(j) ? json_number_value(j) : NAN;
}

static int index_of(double x)
{
    return x >= 0 && x < INT_MAX && x == floor(x) ? (int)x : -1;
}

static const char *text(const json_t *j, struct arena *a)
{
    int64_t n = (int64_t)json_string_length(j);
    return n ? lenient_utf8(json_string_value(j), n, a) : NULL;
}

static void copy_text(const char *text, char *to, size_t size)
{
    snprintf(to, size, "%s", text && strlen(text) < size ? text : "");
}

static int name_of(const struct field *f, const char *text)
{
    for (int i = 0; text && i < f->most; i++)
        if (strcmp(f->names[i], text) == 0) return i;
    return -1;
}

static void *take_figures(json_t *j, int *ret_n, struct arena *a)
{
    struct figure *figure = ARENA_NEW(a, struct figure, (int64_t)json_object_size(j) + 1);
    const char *name;
    json_t *value;
    json_object_foreach(j, name, value)
        if (json_is_number(value))
            figure[(*ret_n)++] = (struct figure){arena_strdup(a, name), json_number_value(value)};
    return figure;
}

/* Reads the elements of `j` from index `first` on: above 0 for a list that ends a tuple. */
static void *take_list(const struct field *f, const json_t *j, int first, int *ret_n,
                       struct arena *a)
{
    int n = (int)json_array_size(j);
    int64_t size = f->of ? f->of->size : (int64_t)sizeof(double);
    char *list = arena_alloc(a, size * (n + 1));
    for (int i = first; i < n; i++) {
        const json_t *value = json_array_get(j, (size_t)i);
        void *to = list + size * *ret_n;
        if (f->of)
            record_take(f->of, value, to, a);
        else if (f->kind != FIELD_TEXTS)
            AT(double, to) = number(value);
        else if (!(AT(const char *, to) = text(value, a)))
            continue;
        ++*ret_n;
    }
    return list;
}

static void take(const struct field *f, const json_t *j, int first, char *to, struct arena *a)
{
    void *at = to + f->at, *list = NULL;
    int n = 0;
    switch (f->kind) {
    case FIELD_TEXT:
        if (f->most)
            copy_text(json_string_value(j), at, (size_t)f->most);
        else
            AT(const char *, at) = text(j, a);
        return;
    case FIELD_REAL:
    case FIELD_WHOLE:
        AT(double, at) = number(j);
        return;
    case FIELD_INT:
    case FIELD_INDEX:
        AT(int, at) = index_of(number(j));
        return;
    case FIELD_COUNT:
        AT(int64_t, at) = lenient_is_count(number(j)) ? (int64_t)number(j) : -1;
        return;
    case FIELD_FLAG:
        AT(bool, at) = json_is_true(j);
        return;
    case FIELD_NAME:
        AT(int, at) = name_of(f, json_string_value(j));
        return;
    case FIELD_ONE:
        record_take(f->of, j, at, a);
        return;
    case FIELD_FIGURES:
        list = take_figures((json_t *)j, &n, a);
        break;
    default:
        list = take_list(f, j, first, &n, a);
    }
    if (f->most) {
        n = n < f->most ? n : f->most;
        int64_t size = f->of                      ? f->of->size
                       : f->kind == FIELD_FIGURES ? (int64_t)sizeof(struct figure)
                                                  : (int64_t)sizeof(char *);
        memcpy(at, list, (size_t)(n * size));
    } else {
        AT(void *, at) = list;
    }
    AT(int, to + f->n_at) = n;
}

void record_take(const struct record *r, const json_t *from, void *to, struct arena *a)
{
    for (int i = 0; i < r->fields; i++) {
        const struct field *f = &r->field[i];
        const json_t *value =
            r->tuple ? json_array_get(from, (size_t)i) : json_object_get(from, f->name);
        bool rest = r->tuple && f->kind >= FIELD_LIST;
        take(f, rest ? from : value, rest ? i : 0, to, a);
    }
}

void record_fill(const struct record *r, void *to, const void *from)
{
    for (const struct field *f = r->field; f < r->field + r->fields; f++) {
        void *x = (char *)to + f->at;
        const void *y = (const char *)from + f->at;
        bool is_real = f->kind == FIELD_REAL || f->kind == FIELD_WHOLE;
        if (f->kind == FIELD_ONE) record_fill(f->of, x, y);
        if (f->kind == FIELD_TEXT && !f->most && !AT(const char *, x))
            AT(const char *, x) = AT(const char *const, y);
        if (is_real && isnan(AT(double, x))) AT(double, x) = AT(const double, y);
    }
}
