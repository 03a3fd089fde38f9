/* version.h - which build this is. */
#ifndef CLI_VERSION_H
#define CLI_VERSION_H

extern const char version_number[]; /* "0.1.0" */
extern const char version_commit[]; /* "cced13a0b1f2-dirty" */
extern const char version_mode[];   /* "release" */

#endif
