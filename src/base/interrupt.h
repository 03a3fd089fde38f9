/* interrupt.h - Ctrl-C as a flag that a loop polls.
 *
 * SIGINT and SIGTERM only set the flag. A second SIGINT kills the process, so pressing Ctrl-C twice
 * works. A second SIGTERM does not: one often reaches both a process and its group. */
#ifndef BASE_INTERRUPT_H
#define BASE_INTERRUPT_H

#include "base/base.h"

/* Installs the handlers and clears the flag. */
void interrupt_catch(void);
/* The signal received since interrupt_catch; 0: none. */
int interrupt_noted(void);
/* Restores the handlers from before interrupt_catch. */
void interrupt_release(void);

#endif
