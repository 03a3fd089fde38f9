/* strobe lab: the list of its ladders and parts; cmd_lab_ladder.c runs a ladder. */
#include "cli/command.h"
#include "present/sheet.h"
#include "present/table_form.h"
#include "view/lab_view.h"

#include <string.h>

static const struct command parts[] = {
    {"lab accumulate", cmd_lab_accumulate, "", "add 0.01 a thousand times in fp32, fp16 and bf16",
     NULL, "strobe lab accumulate --json"},
    {"lab formats", cmd_lab_formats, "[X]",
     "the bits of fp32, tf32, fp16, bf16 and fp8, and what X becomes in each (1)", NULL,
     "strobe lab formats 0.1 --svg=formats.svg"},
    {"lab add", cmd_lab_add, "A B", "add two numbers bit by bit, as hardware does", NULL,
     "strobe lab add 1000 0.01 --dtype=float16"},
    {"lab products", cmd_lab_products, "", "the error and the time of one matmul in each format",
     NULL, "strobe lab products --size=512x512x512"},
    {"lab bpe", cmd_lab_bpe, "",
     "text to tokens: GPT-2's byte pair encoding, from the definition to the fastest encoder", NULL,
     "strobe lab bpe --from=book.txt"},
    {"lab kernel", cmd_lab_kernel, "FORMULA",
     "any formula of x, y and z: separate kernels and fused ones, with their gradient", NULL,
     "strobe lab kernel 'where(x < 0, a * (exp(x) - 1), x)' --set=a=1.5"},
    {"lab memory", cmd_lab_memory, "",
     "size, bandwidth and latency of each level of memory, from L1 to DRAM or HBM", NULL,
     "strobe lab memory --device=cpu --svg=memory.svg"},
    {"lab occupancy", cmd_lab_occupancy, "",
     "what more warps on an SM are worth: one kernel with more and more registers, or shared "
     "memory",
     NULL, "strobe lab occupancy --svg=occupancy.svg"},
    {"lab launch", cmd_lab_launch, "",
     "what it costs to launch a kernel, or to give an operator a team of threads, and how to avoid "
     "it",
     NULL, "strobe lab launch --device=cpu"},
};

static enum status list(const struct table_form *f, struct arena *a)
{
    static const struct table_column of_part[] = {
        {"command", "also", "a command", false},
        {"what", "what it shows", "in a few words", false},
    };
    struct sheet s;
    lab_list_sheet(&s, a);
    struct table *t = &sheet_add(&s, NULL, of_part, COUNT_OF(of_part), COUNT_OF(parts), a)->table;
    for (int i = 0; i < COUNT_OF(parts); i++) {
        table_set_text(t, i, 0, parts[i].name);
        table_set_text(t, i, 1, parts[i].help);
    }
    if (f->csv) s.tables = 1;
    sheet_note(&s, "strobe lab LADDER runs one here; --template prints a kernel to begin from, and "
                   "--kernel=FILE adds yours");
    command_print_sheet(&s, f);
    return ST_OK;
}

/* Runs the ladder or the part of that name; false: there is none. */
static bool run_part(const char *name, int argc, char **argv, enum status *ret, struct arena *a)
{
    static const char prefix[] = "lab ";
    for (int i = 0; i < COUNT_OF(parts); i++) {
        if (strcmp(name, parts[i].name + strlen(prefix))) continue;
        *ret = command_run(&parts[i], argc, argv);
        return true;
    }
    return cmd_lab_ladder(name, argc, argv, ret, a);
}

enum status cmd_lab(int argc, char **argv, struct arena *a)
{
    struct table_form f = {0};
    enum status st;
    const struct opt options[] = {TABLE_FORM_OPTIONS(&f), {0}};
    if (argc > 0 && run_part(argv[0], argc - 1, argv + 1, &st, a)) return st;
    const char *word = argc > 0 && argv[0][0] != '-' ? argv[0] : NULL;
    st = opt_parse(options, &argc, argv, NULL);
    if (word && (st == ST_OK || st == ST_USAGE))
        return fail(ST_USAGE, "lab has no ladder %s; strobe lab lists them", word);
    if (st == ST_USAGE)
        return fail_in(st, "name a ladder before its options, as in strobe lab copy --device=cpu");
    TRY(st);
    if (argc) return fail(ST_USAGE, "lab has no ladder %s; strobe lab lists them", argv[0]);
    TRY(table_form_check(&f));
    return list(&f, a);
}
