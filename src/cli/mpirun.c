#include "cli/mpirun.h"

#include "backend/backend.h"
#include "backend/communicator.h"
#include "base/file.h"
#include "cli/version.h"
#include "engine/device.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The words of this process, after the first; *ret_count of them. */
static char **words_of_process(int *ret_count, struct arena *a)
{
    char *text;
    int64_t bytes, at = 0;
    int count = 0, capacity = 0;
    char **word = NULL;
    *ret_count = 0;
    if (file_read("/proc/self/cmdline", a, &text, &bytes) != ST_OK) return NULL;
    for (; at < bytes; at += (int64_t)strlen(text + at) + 1) {
        ARENA_GROW(a, word, count, capacity);
        word[count++] = text + at;
    }
    *ret_count = count ? count - 1 : 0;
    return count ? word + 1 : NULL;
}

/* One space between the words. */
static const char *command_line(struct arena *a)
{
    int words;
    char **word = words_of_process(&words, a);
    const char *all = "";
    for (int i = 0; i < words; i++) all = arena_printf(a, "%s%s%s", all, i ? " " : "", word[i]);
    return all;
}

struct crew_program mpirun_program(struct arena *a)
{
    return (struct crew_program){
        arena_printf(a, "%s %s %s", version_number, version_commit, version_mode), command_line(a)};
}

bool mpirun_is_there(void)
{
    const char *path = getenv("PATH");
    while (path && *path) {
        char file[4200];
        int length = (int)strcspn(path, ":");
        snprintf(file, sizeof file, "%.*s/mpirun", length, path);
        if (access(file, X_OK) == 0) return true;
        path += length + (path[length] == ':');
    }
    return false;
}

/* Processes need a GPU each; threads share one. */
enum status mpirun_is_needed(const struct config *c, bool *ret)
{
    bool asked = c->ranks.by == RANKS_MPI;
    struct device d;
    *ret = false;
    if (c->ranks.count == 1 || c->ranks.by == RANKS_THREADS) return ST_OK;
    TRY(device_of(c, &d));
    bool enough = d.backend->host_memory || d.backend->devices.count() >= c->ranks.count;
    if (communicator_is_mpi() || (!asked && !enough)) return ST_OK;
    *ret = communicator_find_mpi() == ST_OK && mpirun_is_there();
    if (*ret || !asked) return ST_OK;
    return mpirun_is_there() ? fail_in(ST_UNSUPPORTED, "ranks_by=mpi")
                             : fail(ST_UNSUPPORTED, "ranks_by=mpi: mpirun is not in PATH");
}

/* --- the process that waits for mpirun -------------------------------------------------------- */

static const char parent_variable[] = "STROBE_MPIRUN_PARENT";
static volatile sig_atomic_t leader, child; /* processes: of rank 0, once it has greeted; mpirun */

static void on_greeting(int, siginfo_t *info, void *)
{
    leader = info->si_pid;
}

/* mpirun itself would end the ranks within a second. */
static void pass_on(int signal)
{
    if (leader)
        kill(leader, signal);
    else if (child)
        kill(child, signal);
}

void mpirun_greet(void)
{
    const char *parent = getenv(parent_variable);
    pid_t pid = parent ? (pid_t)strtol(parent, NULL, 10) : 0;
    if (pid > 1) kill(pid, SIGUSR1);
}

static void catch_signals(void)
{
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction greeting = {.sa_sigaction = on_greeting, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction stop = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &greeting, NULL);
    for (int i = 0; i < COUNT_OF(stops); i++) sigaction(stops[i], &stop, NULL);
}

/* After a rank has ended, mpirun asks the others to end and by default kills them a second later,
 * which is too soon on a busy machine for rank 0 to print which rank it was. It waits for this time
 * twice before it ends. Open MPI 4 and 5 read these variables; other programs called mpirun ignore
 * them. */
static void give_time_to_end(void)
{
    setenv("OMPI_MCA_odls_base_sigkill_timeout", "3", 0);
    setenv("PRTE_MCA_odls_base_sigkill_timeout", "3", 0);
}

/* In a process group of its own, to which a terminal sends no Ctrl-C. */
static void exec_mpirun(char **word)
{
    give_time_to_end();
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execvp(word[0], word);
    fprintf(stderr, "strobe: mpirun cannot be started: %s; use ranks_by=threads\n",
            strerror(errno));
    _exit(1);
}

/* Ranks share processors by `threads`, so MPI must not bind them. `-q`: MPI adds no pages to the
 * one sentence. */
enum status mpirun_run(int64_t ranks, struct arena *a)
{
    static char *const fixed[] = {"mpirun", "-q", "--bind-to", "none", "--oversubscribe", "-n"};
    char self[4096];
    int words, n = 0, status;
    char **word = words_of_process(&words, a);
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0 || !words) return fail(ST_IO, "/proc/self cannot be read: use ranks_by=threads");
    self[length] = '\0';
    char **all = ARENA_NEW(a, char *, COUNT_OF(fixed) + 4 + words);
    for (int i = 0; i < COUNT_OF(fixed); i++) all[n++] = fixed[i];
    all[n++] = arena_printf(a, "%lld", (long long)ranks);
    if (geteuid() == 0) all[n++] = (char *)"--allow-run-as-root";
    all[n++] = self;
    for (int i = 0; i < words; i++) all[n++] = word[i];
    fflush(stdout);
    setenv(parent_variable, arena_printf(a, "%d", (int)getpid()), 1);
    catch_signals();
    pid_t pid = fork();
    if (pid < 0) return fail(ST_MEMORY, "no process for mpirun: %s", strerror(errno));
    if (pid == 0) exec_mpirun(all);
    child = pid;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
