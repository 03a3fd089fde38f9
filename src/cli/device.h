/* device.h - the option --device of commands that take no configuration; it has the words of the key. */
#ifndef CLI_DEVICE_H
#define CLI_DEVICE_H

#include "backend/backend.h"

/* A row for a command's table of options. */
#define DEVICE_OPTION(word)                                                                        \
    {                                                                                              \
        "device", OPT_TEXT, (word), "NAME", "cpu, cuda or cuda:N; a GPU where there is one (auto)" \
    }

/* The device of a word; NULL: auto. */
enum status device_of_word(const char *word, struct device *ret);

#endif
