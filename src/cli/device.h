/* device.h - the option --device of commands without a configuration: values of the key. */
#ifndef CLI_DEVICE_H
#define CLI_DEVICE_H

#include "backend/backend.h"

struct config;

/* A row for the option table of a command. */
#define DEVICE_OPTION(word)                                                                     \
    {                                                                                           \
        "device", OPT_TEXT, (word), "NAME", "cpu, cuda or cuda:N (auto: a GPU if there is one)" \
    }

/* Finds the device; NULL: auto. */
enum status device_of_word(const char *word, struct device *ret);
/* Finds the device of a configuration and applies its number of threads and instruction set. */
enum status device_prepare(const struct config *c, struct device *ret);

#endif
