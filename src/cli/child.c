#include "cli/child.h"

#include "base/interrupt.h"
#include "base/turn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POLL_MS = 50 };

extern char **environ;

/* Passes any signal on as SIGTERM: a second SIGINT after a terminal's would kill the child. */
static int wait_for(const struct child *c)
{
    int status = 0;
    bool passed_on = false;
    while (waitpid(c->pid, &status, WNOHANG) == 0) {
        if (interrupt_noted() && !passed_on) {
            child_stop(c);
            passed_on = true;
        }
        poll(NULL, 0, POLL_MS);
    }
    return status;
}

enum status child_start(struct child *c, char *const *words, const char *what, enum child_stdout to,
                        int fd)
{
    posix_spawn_file_actions_t actions;
    signal(SIGCHLD, SIG_DFL); /* if the parent ignores SIGCHLD, the exit status is lost */
    posix_spawn_file_actions_init(&actions);
    bool unread = (fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY; /* it was closed */
    if (to == CHILD_TO_NOTHING || (to == CHILD_TO_STDERR && unread))
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    else if (to == CHILD_TO_STDERR)
        posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    if (fd >= 0) posix_spawn_file_actions_adddup2(&actions, fd, TURN_FD);
    int error = posix_spawn(&c->pid, "/proc/self/exe", &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error ? fail(ST_IO, "%s could not be started: %s", what, strerror(error)) : ST_OK;
}

void child_stop(const struct child *c)
{
    kill(c->pid, SIGTERM);
}

enum status child_end(const struct child *c, const char *what)
{
    int status = wait_for(c);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return ST_OK;
    if (interrupt_noted() || (WIFEXITED(status) && WEXITSTATUS(status) == 130))
        return fail(ST_INTERRUPTED, "stopped at %s", what);
    if (WIFSIGNALED(status))
        return fail(ST_IO, "%s was killed by a signal: %s", what, strsignal(WTERMSIG(status)));
    return fail(WEXITSTATUS(status) == 2 ? ST_USAGE : ST_IO, "%s failed; its message is above",
                what);
}

enum status child_run(char *const *words, const char *what, bool quiet)
{
    struct child c;
    TRY(child_start(&c, words, what, quiet ? CHILD_TO_NOTHING : CHILD_TO_STDERR, -1));
    return child_end(&c, what);
}
