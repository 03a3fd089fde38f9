/* strobe machine: measures the peaks of this machine and stores them for other commands. */
#include "base/isa.h"
#include "base/opt.h"
#include "base/str.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/device.h"
#include "view/ceilings.h"
#include "view/machine_view.h"

#include <stdio.h>

enum { THREADS_MOST = 4096 };

enum status cmd_machine(int argc, char **argv)
{
    bool quick = false, forget = false, json = false;
    int64_t threads = 0;
    const char *isa = NULL, *word = NULL;
    const struct opt options[] = {
        DEVICE_OPTION(&word),
        {"quick", OPT_FLAG, &quick, NULL, "finish in a few seconds, with fewer shapes and repeats"},
        {"forget", OPT_FLAG, &forget, NULL,
         "drop the earlier measurements of this machine; otherwise the best of all is kept"},
        {"threads", OPT_INT, &threads, "N", "CPU threads (default: all that this process may use)"},
        {"isa", OPT_TEXT, &isa, "SET",
         "widest instruction set: amx, avx512_bf16, avx512, avx2, sse2, neon or plain"},
        {"json", OPT_FLAG, &json, NULL,
         "as one JSON object, with the bandwidth at every copy size"},
        {0},
    };
    TRY(opt_parse(options, &argc, argv, NULL));
    if (argc) return fail(ST_USAGE, "machine takes only options; found %s", argv[0]);
    if (threads < 0 || threads > THREADS_MOST)
        return fail(ST_USAGE, "--threads must be 0 to %d", THREADS_MOST);
    if (isa) TRY(isa_limit_word(isa));
    struct arena a = {0};
    struct str s = {0};
    struct machine m;
    struct device device;
    const char *path = NULL;
    TRY(device_of_word(word, &device));
    threads_set(threads);
    enum status st = machine_identify(&m, &device, &a);
    if (st == ST_OK) st = ceilings_measure(&m, quick, forget, &path, &a);
    if (st == ST_OK) machine_view_print(&m, path, json, &s, &a);
    fputs(str_text(&s), stdout);
    str_release(&s);
    arena_release(&a);
    return st;
}
