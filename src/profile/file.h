/* file.h - a profile as an object: profile.json, which docs/PROFILE.md describes field by field. */
#ifndef PROFILE_FILE_H
#define PROFILE_FILE_H

#include "profile/profile.h"

/* The caller releases it with json_decref. `version` is that of the program. */
struct json_t *profile_json(const struct profile *p, const char *version);
/* Writes it as PATH, and makes the folder. */
enum status profile_write(const struct profile *p, const char *version, const char *path);

#endif
