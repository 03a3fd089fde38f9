/* texts.h - configuration files that suites are made of, embedded in the program. */
#ifndef SUITE_TEXTS_H
#define SUITE_TEXTS_H

/* By the name of the file, "cs336_small.conf"; NULL: it is none of them. */
const char *suite_text(const char *name);

#endif
