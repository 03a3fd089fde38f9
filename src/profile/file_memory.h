/* file_memory.h - what is in memory while a step runs, as profile.json has it; private to profile/. */
#ifndef PROFILE_FILE_MEMORY_H
#define PROFILE_FILE_MEMORY_H

struct engine;
struct json_t;

/* Of the engine's plans of a step, kernel by kernel; the caller releases it with json_decref. */
struct json_t *profile_memory_json(const struct engine *e);

#endif
