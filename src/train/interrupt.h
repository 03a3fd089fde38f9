/* interrupt.h - Ctrl-C as a question that a loop asks at a moment that suits it.
 *
 * The first SIGINT or SIGTERM is only noted; the second one kills at once, as if nobody had caught it. */
#ifndef TRAIN_INTERRUPT_H
#define TRAIN_INTERRUPT_H

#include "base/base.h"

/* From here on the signals are noted; forgets an earlier one. */
void interrupt_catch(void);
/* The signal that was noted since interrupt_catch; 0: none. */
int interrupt_noted(void);
/* The signals do again what they did before interrupt_catch. */
void interrupt_release(void);

#endif
