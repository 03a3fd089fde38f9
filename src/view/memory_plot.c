/* The timeline of memory as a picture, in characters and as an SVG. */
#include "base/str.h"
#include "present/area.h"
#include "view/memory_view.h"

#include <string.h>

/* From the bottom up: permanent memory first, then temporary values. */
static const struct {
    enum memory_part part;
    char letter;
} layers[] = {{MEMORY_WEIGHTS, 'w'},   {MEMORY_COPIES, 'c'},   {MEMORY_GRADIENTS, 'g'},
              {MEMORY_OPTIMIZER, 'o'}, {MEMORY_CACHE, 'k'},    {MEMORY_INPUTS, 'i'},
              {MEMORY_SAVED, 'S'},     {MEMORY_FORWARD, 'f'},  {MEMORY_BACKWARD, 'b'},
              {MEMORY_UPDATE, 'u'},    {MEMORY_WORKSPACE, 'x'}};
_Static_assert(COUNT_OF(layers) == MEMORY_UNUSED, "each part except the last is drawn");

static bool is_there(const struct memory_course *c, enum memory_part part)
{
    for (int i = 0; i < c->moments; i++)
        if (c->moment[i].bytes[part]) return true;
    return false;
}

static char letter_at(const struct memory_moment *m, double level)
{
    double top = 0;
    for (int i = 0; i < COUNT_OF(layers); i++) {
        top += (double)m->bytes[layers[i].part];
        if (level < top) return layers[i].letter;
    }
    return ' ';
}

/* Whether a new span begins: the graph or the phase changes. */
static bool begins(const struct memory_view *v, const int *at, int column)
{
    const struct program *p = v->program;
    const struct memory_moment *m = &v->course.moment[at[column]];
    const struct memory_moment *before = column ? &v->course.moment[at[column - 1]] : NULL;
    return !before || before->kind != m->kind ||
           p->graph[m->kind].node[m->step].phase != p->graph[m->kind].node[before->step].phase;
}

static void print_spans(const struct memory_view *v, const int *at, int columns, struct str *s)
{
    struct arena scratch = {0};
    int written = 0;
    for (int i = 0; i < columns; i++) {
        if (!begins(v, at, i)) continue;
        const char *words = memory_phase_words(v, &v->course.moment[at[i]], &scratch);
        for (; written < i; written++) str_append(s, " ");
        if (written > i) continue; /* the name of the previous span reaches into this one */
        str_printf(s, "|%s", words);
        written += 1 + (int)strlen(words);
    }
    str_append(s, "\n");
    arena_release(&scratch);
}

static void print_legend(const struct memory_course *c, int margin, struct str *s)
{
    enum { IN_A_LINE = 4, CELL = 25 };
    int n = 0, blanks = 0; /* spaces up to the next name */
    for (int i = 0; i < COUNT_OF(layers); i++) {
        if (!is_there(c, layers[i].part)) continue;
        bool first = n++ % IN_A_LINE == 0;
        if (first && n > 1) str_append(s, "\n");
        const char *name = memory_part_name(layers[i].part);
        str_printf(s, "%*s%c %s", first ? margin : blanks, "", layers[i].letter, name);
        blanks = CELL - 2 - (int)strlen(name);
    }
    str_append(s, "\n");
}

void memory_plot_text(const struct memory_view *v, struct str *s)
{
    enum { WIDTH = 84, HEIGHT = 16, MARGIN = 12, EVERY = 4 };
    const struct memory_course *c = &v->course;
    int at[WIDTH], columns = memory_columns(c, WIDTH, at), peak = 0;
    double high = (double)c->moment[c->peak].used;
    char bytes[32];
    for (int i = 0; i < columns; i++)
        if (at[i] == c->peak) peak = i;
    for (int row = HEIGHT; row-- > 0;) {
        bool labelled = (row + 1) % EVERY == 0;
        str_printf(s, "%*s |", MARGIN - 2,
                   labelled ? str_bytes(bytes, high * (row + 1) / HEIGHT) : "");
        char line[WIDTH + 1];
        int end = 0;
        for (int i = 0; i < columns; i++) {
            line[i] = letter_at(&c->moment[at[i]], high * (row + 0.5) / HEIGHT);
            if (line[i] != ' ') end = i + 1;
        }
        str_printf(s, "%.*s\n", end, line);
    }
    str_printf(s, "%*s +", MARGIN - 2, "0 B");
    for (int i = 0; i < columns; i++) str_append(s, i == peak ? "^" : "-");
    str_printf(s, "\n%*s", MARGIN, "");
    print_spans(v, at, columns, s);
    print_legend(c, MARGIN, s);
}

void memory_plot_svg(const struct memory_view *v, struct markup *m, struct arena *a)
{
    enum { COLUMNS = 420, SPANS = 16 };
    const struct memory_course *c = &v->course;
    char bytes[32];
    int at[COLUMNS], columns = memory_columns(c, COLUMNS, at), peak = 0;
    struct area_layer layer[COUNT_OF(layers)];
    struct area_span span[SPANS];
    struct area area = {
        .layer = layer, .layers = COUNT_OF(layers), .columns = columns, .span = span};
    const char **word = ARENA_NEW(a, const char *, columns);
    for (int l = 0; l < COUNT_OF(layers); l++) {
        double *y = ARENA_NEW(a, double, columns);
        for (int i = 0; i < columns; i++) y[i] = (double)c->moment[at[i]].bytes[layers[l].part];
        layer[l] =
            (struct area_layer){memory_part_name(layers[l].part),
                                arena_printf(a, "memory-%s", memory_part_id(layers[l].part)), y};
    }
    for (int i = 0; i < columns; i++) {
        const struct memory_moment *moment = &c->moment[at[i]];
        word[i] = memory_moment_words(v, moment, a);
        if (at[i] == c->peak) peak = i;
        if (begins(v, at, i) && area.spans < SPANS)
            span[area.spans++] = (struct area_span){memory_phase_words(v, moment, a), i};
    }
    area.word = word;
    area.mark = peak;
    area.mark_name =
        arena_printf(a, "%s: %s", word[peak], str_bytes(bytes, (double)c->moment[c->peak].used));
    area.level = (double)c->total;
    area.level_name = arena_printf(a, "allocated: %s", str_bytes(bytes, (double)c->total));
    area.title = "Memory of a training step, kernel by kernel";
    area.note = v->words;
    area_print_svg(&area, m);
}
