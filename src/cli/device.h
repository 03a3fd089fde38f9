/* device.h - the option --device of commands without a configuration: values of the key. */
#ifndef CLI_DEVICE_H
#define CLI_DEVICE_H

#include "backend/backend.h"

struct config;

/* A row for the option table of a command. */
#define DEVICE_OPTION(word)                                              \
    {                                                                    \
        "device", OPT_TEXT, (word), "NAME",                              \
            "cpu, cuda or cuda:N (default: auto, a GPU if there is one)" \
    }

/* Where a command without a configuration measures, as the options --device, --isa and --threads
 * say; NULL, 0: not given. */
struct place {
    const char *device, *isa;
    int64_t threads;
};
/* Checks the threads and applies the instruction set. */
enum status place_check(const struct place *p);
/* The same, finds the device, and applies the threads. */
enum status place_open(const struct place *p, struct device *ret);
/* Finds the device; NULL: auto. */
enum status device_of_word(const char *word, struct device *ret);
/* The memory that is free now, but for a tenth, which is left to other users; -1: unknown. */
int64_t device_room(const struct device *d);
/* The number of threads for a training that runs alone on a CPU and leaves the key `threads` at 0:
 * fewer than one per core, with a line that says so, if other programs keep cores busy
 * (threads_free); else 0. */
int64_t device_free_threads(const struct config *c);
/* Finds the device of a configuration and applies its number of threads and instruction set. */
enum status device_prepare(const struct config *c, struct device *ret);

#endif
