/* machine_parts.h - how the parts of machine_measure report; private to measure/machine*.c. */
#ifndef MEASURE_MACHINE_PARTS_H
#define MEASURE_MACHINE_PARTS_H

#include "machine/machine.h"

struct machine_work {
    struct machine *machine;
    bool quick;
    void (*each)(void *user, double done, const char *what);
    void *user;
    double done; /* 0 ... 1 */
};

/* Half of the work is products, half copies. */
void machine_work_done(struct machine_work *w, double share, const char *next);

/* Both change the number of threads that is set. */
enum status machine_measure_products(struct machine_work *w);
enum status machine_measure_copies(struct machine_work *w);
/* The same in a GPU's memory. */
enum status machine_measure_device_copies(struct machine_work *w);
/* A smaller copy is never slower for being small. */
void machine_make_ceilings(struct machine *m);

#endif
