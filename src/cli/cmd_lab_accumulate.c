/* strobe lab accumulate: 0.01, added a thousand times in narrow types. */
#include "cli/command.h"
#include "lab/accumulate.h"
#include "present/sheet.h"
#include "present/table_cells.h"
#include "present/table_form.h"

/* clang-format off */
#define COLUMNS(X) \
    X("sum", "sum", "type of the sum += type of the addend", TEXT, x->name) \
    X("addend", "0.01 rounds to", "exact value", FORMAT, true, "%.17g", x->addend) \
    X("result", "sum of 1000", "exact value", FORMAT, true, "%.17g", x->sum) \
    X("error", "error", "difference from 10", FORMAT, true, "%+.2g", x->sum - 10) \
    X("hex", "hex", "the bits of the result", TEXT, arena_printf(a, x->of_sum == NUMBER_FP32 ? "%08x" : "%04x", number_bits(x->of_sum, x->sum))) \
    X("bits", "sign exponent fraction", "the bits of the result", TEXT, arena_strdup(a, number_text(x->of_sum, x->sum, bits))) \
    X("stuck_after", "stuck after", "additions after which the sum no longer changes", NUMBER, x->stuck, 0, x->stuck)
/* clang-format on */

static void make_sheet(struct sheet *s, struct arena *a)
{
    struct accumulation all[ACCUMULATIONS];
    accumulate_all(all);
    *s = (struct sheet){.name = "accumulate", .title = "0.01, added a thousand times"};
    static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};
    struct table_row row = {.arena = a};
    row.table = &sheet_add(s, NULL, columns, COUNT_OF(columns), ACCUMULATIONS, a)->table;
    for (const struct accumulation *x = all; x < all + ACCUMULATIONS; x++, table_next_row(&row)) {
        char bits[NUMBER_TEXT];
        COLUMNS(TABLE_CELL)
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
