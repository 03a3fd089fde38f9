/* strobe lab accumulate: 0.01, added a thousand times in narrow types. */
#include "cli/command.h"
#include "lab/accumulate.h"
#include "present/sheet.h"
#include "present/table_form.h"

enum { NAME, ADDEND, SUM, ERROR, HEX, BITS, STUCK, COLUMNS };

static const struct table_column columns[COLUMNS] = {
    [NAME] = {"sum", "sum", "type of the sum += type of the addend", false},
    [ADDEND] = {"addend", "0.01 rounds to", "exact value", true},
    [SUM] = {"result", "sum of 1000", "exact value", true},
    [ERROR] = {"error", "error", "difference from 10", true},
    [HEX] = {"hex", "hex", "the bits of the result", false},
    [BITS] = {"bits", "sign exponent fraction", "the bits of the result", false},
    [STUCK] = {"stuck_after", "stuck after", "additions after which the sum no longer changes",
               true},
};

static void set_exact(struct table *t, int row, int column, const char *format, double x,
                      struct arena *a)
{
    *table_at(t, row, column) = (struct table_cell){arena_printf(a, format, x), x};
}

static void make_sheet(struct sheet *s, struct arena *a)
{
    struct accumulation all[ACCUMULATIONS];
    accumulate_all(all);
    *s = (struct sheet){.name = "accumulate", .title = "0.01, added a thousand times"};
    struct table *t = &sheet_add(s, NULL, columns, COLUMNS, ACCUMULATIONS, a)->table;
    for (int i = 0; i < ACCUMULATIONS; i++) {
        const struct accumulation *x = &all[i];
        char bits[NUMBER_TEXT];
        table_set_text(t, i, NAME, x->name);
        set_exact(t, i, ADDEND, "%.17g", x->addend, a);
        set_exact(t, i, SUM, "%.17g", x->sum, a);
        set_exact(t, i, ERROR, "%+.2g", x->sum - 10, a);
        table_set_text(t, i, HEX,
                       arena_printf(a, x->of_sum == NUMBER_FP32 ? "%08x" : "%04x",
                                    number_bits(x->of_sum, x->sum)));
        table_set_text(t, i, BITS, arena_strdup(a, number_text(x->of_sum, x->sum, bits)));
        if (x->stuck) table_set(t, i, STUCK, 0, x->stuck, a);
        sheet_note(s, arena_printf(a, "%s: %s", x->name, x->why));
    }
}

enum status cmd_lab_accumulate(int argc, char **argv, struct arena *a)
{
    struct table_form f = {0};
    const struct opt options[] = {TABLE_FORM_OPTIONS(&f), {0}};
    TRY(command_options("lab accumulate", options, argc, argv));
    TRY(table_form_check(&f));
    struct sheet s;
    make_sheet(&s, a);
    command_print_sheet(&s, &f);
    return ST_OK;
}
