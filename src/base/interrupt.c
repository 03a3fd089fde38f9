#include "base/interrupt.h"

#include <poll.h>
#include <signal.h>

/* The first two are caught even if the parent process ignores them. */
static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGXFSZ, SIGPIPE};
enum { ALWAYS = 2 };
static struct sigaction before[COUNT_OF(caught)];
static volatile sig_atomic_t noted, pipe_broke; /* a handler has no other place to write to */

static void note(int number)
{
    noted = number;
    pipe_broke |= number == SIGPIPE;
    if (number == SIGINT || number == SIGTERM)
        sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

void interrupt_catch(void)
{
    noted = pipe_broke = 0;
    /* A stack of its own: generated code of oneDNN 2.6 may use the stack pointer for something else
     * while a signal arrives, and the handler's frame would then overwrite the heap. */
    static char room[1 << 16];
    sigaltstack(&(stack_t){.ss_sp = room, .ss_size = sizeof room}, NULL);
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART | SA_ONSTACK};
    for (int i = 0; i < COUNT_OF(caught); i++) {
        sigaction(caught[i], NULL, &before[i]);
        if (i < ALWAYS || before[i].sa_handler != SIG_IGN) sigaction(caught[i], &action, NULL);
    }
}

int interrupt_noted(void)
{
    return noted;
}

/* Another thread may run the handler, and a signal may come between the look and the wait: the flag
 * is looked at now and then. */
enum status interrupt_wait(int fd)
{
    enum { LOOK_MS = 50 };
    struct pollfd p = {.fd = fd, .events = POLLIN};
    do
        if (noted) return fail(ST_INTERRUPTED, "interrupted");
    while (poll(&p, 1, LOOK_MS) <= 0);
    return ST_OK;
}

void interrupt_release(void)
{
    for (int i = 0; i < COUNT_OF(caught); i++) sigaction(caught[i], &before[i], NULL);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (pipe_broke) sigaction(SIGPIPE, &ignore, NULL);
}
