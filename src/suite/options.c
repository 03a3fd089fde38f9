/* Options of suites on the command line. */
#include "suite/suite.h"

#include <stddef.h>
#include <string.h>

/* What a number is while the command line is parsed. */
#define NOT_GIVEN INT64_MIN

#define ROW(bit, member, kind, ...) \
    {SUITE_##bit, offsetof(struct suite_request, member), OPT_##kind, __VA_ARGS__},

static const struct option {
    unsigned bit;
    size_t place;
    enum opt_kind kind;
    const char *name, *value_name;
    int64_t most;
    bool grid; /* grids of the command line take it, too */
    const char *help;
} options[SUITE_OPTION_COUNT] = {SUITE_OPTIONS(ROW)};

static void *member_of(const struct suite_request *r, const struct option *o)
{
    return (char *)r + o->place;
}

static bool is_given(const struct suite_request *r, const struct option *o)
{
    const void *x = member_of(r, o);
    if (o->kind == OPT_FLAG) return *(const bool *)x;
    return o->kind == OPT_TEXT ? *(const char *const *)x != NULL : *(const int64_t *)x != 0;
}

/* The help, with the suites that take the option. */
static const char *help_of(const struct option *o, struct arena *a)
{
    const char *with = "", *without = "";
    int balance = 0;
    for (const struct suite *s = suites; s->name; s++) {
        const char **names = s->takes & o->bit ? &with : &without;
        balance += names == &with ? 1 : -1;
        *names = arena_printf(a, "%s%s%s", *names, **names ? ", " : "", s->name);
    }
    return arena_printf(a, "%s; %ssuites: %s%s", o->help, o->grid ? "" : "only ",
                        balance > 0 ? "all but " : "", balance > 0 ? without : with);
}

void suite_add_options(struct suite_request *r, struct opt *ret, struct arena *a)
{
    for (int i = 0; i < SUITE_OPTION_COUNT; i++) {
        const struct option *o = &options[i];
        ret[i] = (struct opt){o->name, o->kind, member_of(r, o), o->value_name, help_of(o, a)};
        if (o->kind == OPT_INT) *(int64_t *)member_of(r, o) = NOT_GIVEN;
    }
}

enum status suite_read_options(struct suite_request *r)
{
    for (const struct option *o = options; o < options + SUITE_OPTION_COUNT; o++) {
        if (o->kind != OPT_INT) continue;
        int64_t *n = member_of(r, o);
        if (*n == NOT_GIVEN)
            *n = 0;
        else if (*n < 1 || *n > o->most)
            return fail(ST_USAGE, "--%s must be 1 to %lld; found %lld", o->name, (long long)o->most,
                        (long long)*n);
    }
    return ST_OK;
}

enum status suite_check_options(const struct suite *s, const struct suite_request *r)
{
    for (const struct option *o = options; o < options + SUITE_OPTION_COUNT; o++) {
        if (!is_given(r, o) || (s ? s->takes & o->bit : o->grid)) continue;
        if (s)
            return fail(ST_USAGE, "the suite %s does not take --%s; leave it out", s->name,
                        o->name);
        return fail(ST_USAGE, "--%s needs --suite=NAME; --suite=list shows the suites", o->name);
    }
    return ST_OK;
}

bool suite_is_given(const struct suite_request *r, const char *option)
{
    for (const struct option *o = options; o < options + SUITE_OPTION_COUNT; o++)
        if (!strcmp(o->name, option)) return is_given(r, o);
    return false;
}

int suite_option_words(const struct suite_request *r, unsigned which, char **ret_word,
                       struct arena *a)
{
    int words = 0;
    for (const struct option *o = options; o < options + SUITE_OPTION_COUNT; o++) {
        if (!(which & o->bit) || !is_given(r, o)) continue;
        const void *x = member_of(r, o);
        ret_word[words++] =
            o->kind == OPT_FLAG ? arena_printf(a, "--%s", o->name)
            : o->kind == OPT_TEXT
                ? arena_printf(a, "--%s=%s", o->name, *(const char *const *)x)
                : arena_printf(a, "--%s=%lld%s", o->name, (long long)*(const int64_t *)x,
                               o->kind == OPT_SIZE ? "B" : "");
    }
    return words;
}
