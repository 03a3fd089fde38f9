#include "base/interrupt.h"

#include <signal.h>

static const int caught[] = {SIGINT, SIGTERM};
static struct sigaction before[COUNT_OF(caught)];
static volatile sig_atomic_t noted; /* a handler has no other place to write to */

static void note(int number)
{
    noted = number;
    sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

void interrupt_catch(void)
{
    noted = 0;
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    for (int i = 0; i < COUNT_OF(caught); i++) sigaction(caught[i], &action, &before[i]);
}

int interrupt_noted(void)
{
    return noted;
}

void interrupt_release(void)
{
    for (int i = 0; i < COUNT_OF(caught); i++) sigaction(caught[i], &before[i], NULL);
}
