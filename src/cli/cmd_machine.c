/* strobe machine: measures the peaks of this machine and stores them for other commands. */
#include "backend/communicator.h"
#include "cli/command.h"
#include "cli/device.h"
#include "config/config.h"
#include "engine/crew.h"
#include "view/ceilings.h"
#include "view/machine_view.h"

enum status cmd_machine(int argc, char **argv, struct arena *a)
{
    bool quick = false, forget = false, json = false;
    struct config c = {.ranks.count = 1};
    struct place place = {0};
    const struct opt options[] = {
        DEVICE_OPTION(&place.device),
        {"quick", OPT_FLAG, &quick, NULL,
         "finish in a few seconds instead of about 3 minutes, with fewer shapes and repeats"},
        {"forget", OPT_FLAG, &forget, NULL,
         "drop the earlier measurements of this machine; otherwise the best of all is kept"},
        {"threads", OPT_INT, &place.threads, "N",
         "CPU threads (default: all that this process may use), of each rank"},
        {"ranks", OPT_INT, &c.ranks.count, "N",
         "also all-reduces among N ranks that are threads, and all else with the threads of one"},
        {"isa", OPT_TEXT, &place.isa, "SET",
         "widest instruction set: amx, avx512_bf16, avx512, avx2, sse2, neon or plain"},
        {"json", OPT_FLAG, &json, NULL,
         "as one JSON object, with the bandwidth at every copy size"},
        {0},
    };
    TRY(command_options("machine", options, argc, argv));
    TRY(place_check(&place));
    if (c.ranks.count < 1 || c.ranks.count > RANKS_MOST)
        return fail(ST_USAGE, "--ranks must be 1 to %d", RANKS_MOST);
    struct str s = {0};
    struct machine m;
    struct device device;
    const char *path = NULL;
    TRY(device_of_word(place.device, &device));
    if (c.ranks.count > 1 && !device.backend->host_memory)
        return fail(ST_USAGE, "--ranks measures ranks that are threads of a CPU: add --device=cpu");
    c.plan.threads = place.threads;
    crew_set_threads(&c);
    TRY(machine_identify(&m, &device, a));
    TRY(ceilings_measure(&m, (int)c.ranks.count, quick, forget, &path, a));
    machine_view_print(&m, path, json, &s, a);
    command_print(&s);
    return ST_OK;
}
