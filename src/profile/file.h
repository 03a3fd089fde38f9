/* file.h - writes a profile as profile.json; docs/PROFILE.md describes its fields. */
#ifndef PROFILE_FILE_H
#define PROFILE_FILE_H

#include "profile/profile.h"

/* The caller releases it with json_decref. `version` is the program's version. */
struct json_t *profile_json(const struct profile *p, const char *version);
/* Writes the JSON to `path`; creates the folder. */
enum status profile_write(const struct profile *p, const char *version, const char *path);

#endif
