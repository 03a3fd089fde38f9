/* machine_parts.h - the parts of machine_measure and their progress; private to machine/. */
#ifndef MACHINE_MACHINE_PARTS_H
#define MACHINE_MACHINE_PARTS_H

#include "machine/machine.h"

struct machine_work {
    struct machine *machine;
    bool quick;
    void (*each)(void *user, double done, const char *what);
    void *user;
    double done; /* 0 ... 1 */
};

/* Adds `share` to w->done and reports it. Matmuls are half of the work, copies the other half.
 * ST_INTERRUPTED: Ctrl-C came. */
enum status machine_work_done(struct machine_work *w, double share, const char *next);

/* Measure the matmuls, and the copies on a CPU. Both change the number of threads
 * (base/threads.h). */
enum status machine_measure_matmuls(struct machine_work *w);
enum status machine_measure_copies(struct machine_work *w);
/* Measures copies in a GPU's memory. */
enum status machine_measure_device_copies(struct machine_work *w);
/* Sets the history to the measurement in `m`. */
void machine_start_history(struct machine *m);
/* Raises each bandwidth to at least the bandwidth of every larger copy and the bandwidth of one
 * thread. */
void machine_make_ceilings(struct machine *m);

#endif
