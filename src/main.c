/* Finds the command, runs it, prints the failure, returns the exit code; nothing else. */
#include "base/log.h"
#include "base/threads.h"
#include "cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* STROBE_LOG=error|warning|info|debug: what is reported on stderr. */
static enum status set_log_level(const char *name)
{
    static const char *const names[] = {[LOG_ERROR] = "error",
                                        [LOG_WARNING] = "warning",
                                        [LOG_INFO] = "info",
                                        [LOG_DEBUG] = "debug"};
    for (int i = 0; i < COUNT_OF(names); i++)
        if (!strcmp(name, names[i])) {
            log_set_level((enum log_level)i);
            return ST_OK;
        }
    return fail(ST_USAGE, "STROBE_LOG takes error, warning, info or debug, not %s", name);
}

enum { MANY_CORES = 8 };

/* OpenMP's threads wait for each other by spinning, some ten milliseconds long: beside another busy
 * program a step then took 570 ms instead of 40 (two cores, configs/shakespeare_char_cpu.conf). About
 * 0.1 ms (5,000 turns) bridges what two balanced threads wait; many are less balanced, and on 16 cores a
 * step took 6.6 ms with 0.1 and 5.0 with 0.4. Whoever sets one of the variables below decides.
 *
 * libgomp reads GOMP_SPINCOUNT in its constructor: before main, before any constructor of this program, and
 * nothing changes it afterwards. Only .preinit_array runs before the constructors of libraries. libc is not
 * initialised then and will take `envp` as it is, an array that cannot grow; so the entry of PATH, which no
 * constructor reads, lends its place until they have run. Where there is no PATH, libgomp's default stays. */
static char spin_count[] = "GOMP_SPINCOUNT=20000";
static char **lent, *path; /* the place in envp, and what belongs there */

static void lend_place(int argc, char **argv, char **envp)
{
    char **place = NULL;
    (void)argc, (void)argv;
    for (char **e = envp; *e; e++) {
        if (!strncmp(*e, "GOMP_SPINCOUNT=", 15) || !strncmp(*e, "OMP_WAIT_POLICY=", 16)) return;
        if (!strncmp(*e, "PATH=", 5)) place = e;
    }
    if (!place) return;
    if (threads_available() < MANY_CORES) strcpy(strchr(spin_count, '=') + 1, "5000");
    lent = place;
    path = *place;
    *place = spin_count;
}

[[gnu::constructor]] static void give_place_back(void)
{
    if (!lent) return;
    *lent = path;
    putenv(spin_count); /* for the processes that this one starts */
}

[[gnu::section(".preinit_array"),
  gnu::used]] static void (*const before_libraries)(int, char **, char **) = lend_place;

static enum status run(int argc, char **argv)
{
    const char *level = getenv("STROBE_LOG");
    if (level) TRY(set_log_level(level));
    if (argc < 2) {
        fputs(command_welcome, stdout);
        return ST_OK;
    }
    const char *name = argv[1];
    if (!strcmp(name, "-h") || !strcmp(name, "--help")) name = "help";
    if (!strcmp(name, "--version")) name = "version";
    const struct command *command = command_find(name);
    if (!command)
        return fail(ST_USAGE,
                    "there is no command %s; the nearest is %s, and `strobe help` has all", name,
                    command_nearest(name)->name);
    return command_run(command, argc - 2, argv + 2);
}

int main(int argc, char **argv)
{
    enum status st = run(argc, argv);
    /* What a full disk or a closed pipe swallowed is a failure, too. */
    bool lost = fflush(stdout) != 0 || ferror(stdout);
    if (lost && st == ST_OK) st = fail(ST_IO, "the results could not be written");
    if (st == ST_OK) return 0;
    fprintf(stderr, "strobe: %s\n", fail_message());
    if (*fail_trail()) log_debug("%s", fail_trail());
    return st == ST_USAGE ? 2 : st == ST_INTERRUPTED ? 130 : 1;
}
