/* interrupt.h - Ctrl-C, and other signals that end a program, as a flag that a loop polls.
 *
 * The signals are SIGINT, SIGTERM, SIGHUP (the terminal is gone), SIGXCPU and SIGXFSZ (limits of
 * the system), and SIGPIPE (stdout or stderr has lost its reader). They only set the flag; the
 * failed write then returns an error. A second SIGINT kills the process, so pressing Ctrl-C twice
 * works. A second signal of another kind does not kill: SIGTERM often reaches a process twice,
 * directly and through its group. A signal that the parent process ignores stays ignored, as nohup
 * needs, except SIGINT and SIGTERM: shells ignore SIGINT for programs in the background. */
#ifndef BASE_INTERRUPT_H
#define BASE_INTERRUPT_H

#include "base/base.h"

/* Installs the handlers and clears the flag. */
void interrupt_catch(void);
/* The signal received since interrupt_catch; 0: none. */
int interrupt_noted(void);
/* Waits until a descriptor can be read. ST_INTERRUPTED if a signal arrives first. */
enum status interrupt_wait(int fd);
/* Restores the handlers that interrupt_catch replaced. If a SIGPIPE arrived, SIGPIPE stays ignored,
 * so that the program still ends with its exit code. */
void interrupt_release(void);

#endif
