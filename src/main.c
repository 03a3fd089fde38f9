/* Finds the command, runs it, prints the failure, returns the exit code; nothing else. */
#include "base/heap.h"
#include "base/log.h"
#include "base/terminal.h"
#include "base/threads.h"
#include "cli/command.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* STROBE_LOG=error|warning|info|debug: the least severe messages that are printed on stderr. */
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
    return fail(ST_USAGE, "STROBE_LOG must be error, warning, info or debug; found %s", name);
}

enum { MANY_CORES = 8 };

/* OpenMP threads wait for each other by spinning for about ten milliseconds. Next to another busy
 * program, a step then took 570 ms instead of 40 (two cores, configs/shakespeare_char_cpu.conf).
 * 5,000 iterations (about 0.1 ms) cover the wait of two balanced threads. Many threads are less
 * balanced: on 16 cores a step took 6.6 ms with 0.1 ms of spinning and 5.0 ms with 0.4 ms.
 * A user who sets one of the variables below overrides this.
 *
 * libgomp reads GOMP_SPINCOUNT once, in its constructor, which runs before main and before the
 * constructors of this program. Only .preinit_array runs earlier. libc is not initialized then and
 * will use `envp` unchanged, an array that cannot grow. So GOMP_SPINCOUNT temporarily replaces the
 * entry of PATH, which no constructor reads. Without PATH, libgomp keeps its default.
 * threads_allowed may run that early. OpenMP must not be called yet: LLVM's library crashes. */
static char spin_count[] = "GOMP_SPINCOUNT=20000";
static char **borrowed, *path; /* the entry of envp, and its original value */

static void set_spin_count(char **envp)
{
    char **entry = NULL;
    for (char **e = envp; *e; e++) {
        if (!strncmp(*e, "GOMP_SPINCOUNT=", 15) || !strncmp(*e, "OMP_WAIT_POLICY=", 16)) return;
        if (!strncmp(*e, "PATH=", 5)) entry = e;
    }
    if (!entry) return;
    if (threads_allowed() < MANY_CORES) strcpy(strchr(spin_count, '=') + 1, "5000");
    borrowed = entry;
    path = *entry;
    *entry = spin_count;
}

[[gnu::constructor]] static void restore_path(void)
{
    if (!borrowed) return;
    *borrowed = path;
    putenv(spin_count); /* for child processes */
}

/* LLVM's OpenMP, which clang links, starts later, at its first use. Its threads spin for 200 ms:
 * with 1 ms, a short training next to busy programs took 1.5 to 1.8 s of processor time instead of
 * 1.9 to 2.8 s. If oneDNN loads libgomp as well, the constructor of libgomp binds this thread
 * (OMP_PROC_BIND), and LLVM's library would then find one processor only. */
[[gnu::weak]] void kmp_set_blocktime(int); /* a function that only LLVM's OpenMP has */
static cpu_set_t mask_at_start;

[[gnu::constructor]] static void prepare_llvm_openmp(void)
{
    if (!kmp_set_blocktime) return;
    sched_setaffinity(0, sizeof mask_at_start, &mask_at_start);
    if (!getenv("OMP_WAIT_POLICY")) setenv("KMP_BLOCKTIME", "1", 0);
}

static void prepare(int, char **, char **envp)
{
    sched_getaffinity(0, sizeof mask_at_start, &mask_at_start);
    set_spin_count(envp);
}
[[gnu::section(".preinit_array"),
  gnu::used]] static void (*const before_libraries)(int, char **, char **) = prepare;

static enum status run_command(int argc, char **argv)
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
                    "there is no command %s; did you mean %s? `strobe help` lists them all", name,
                    command_nearest(name)->name);
    return command_run(command, argc - 2, argv + 2);
}

/* If the parent closed stdin, stdout or stderr, the next file opened would take its number, and
 * messages would be written into that file. Like a closed file, the replacement cannot be used. */
static void open_standard_streams(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd) _exit(1);
}

int main(int argc, char **argv)
{
    open_standard_streams();
    terminal_guard_stdout();
    heap_guard_libraries();
    enum status st = run_command(argc, argv);
    /* Output lost to a full disk or a closed pipe is a failure, too. */
    bool lost = fflush(stdout) != 0 || ferror(stdout);
    if (lost && st == ST_OK) st = fail(ST_IO, "the results could not be written to stdout");
    if (st == ST_OK) return 0;
    log_end(fail_message());
    if (*fail_trail()) log_debug("%s", fail_trail());
    return st == ST_USAGE ? 2 : st == ST_REGRESSION ? 3 : st == ST_INTERRUPTED ? 130 : 1;
}
