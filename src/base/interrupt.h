/* interrupt.h - Ctrl-C as a question that a loop asks at a moment that suits it.
 *
 * SIGINT and SIGTERM are only noted. A SIGINT after that kills at once, as if nobody had caught it: who
 * presses Ctrl-C twice means it. A SIGTERM does not: one often comes to a process and to its group. */
#ifndef BASE_INTERRUPT_H
#define BASE_INTERRUPT_H

#include "base/base.h"

/* From here on the signals are noted; forgets an earlier one. */
void interrupt_catch(void);
/* The signal that was noted since interrupt_catch; 0: none. */
int interrupt_noted(void);
/* The signals do again what they did before interrupt_catch. */
void interrupt_release(void);

#endif
