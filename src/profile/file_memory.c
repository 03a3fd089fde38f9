#include "profile/file_memory.h"

#include "base/arena.h"
#include "train/memory.h"

#include <jansson.h>

static json_t *moment_json(const struct memory_moment *m)
{
    json_t *j = json_pack("[s, i]", graph_kind_name(m->kind), m->step);
    for (int part = 0; part < MEMORY_PARTS; part++)
        json_array_append_new(j, json_integer((json_int_t)m->bytes[part]));
    return j;
}

struct json_t *profile_memory_json(const struct engine *e)
{
    struct arena a = {0};
    struct memory_course course;
    json_t *parts = json_array(), *moments = json_array();
    memory_course(e, &course, &a);
    for (int part = 0; part < MEMORY_PARTS; part++)
        json_array_append_new(parts, json_pack("[s, s]", memory_part_id((enum memory_part)part),
                                               memory_part_name((enum memory_part)part)));
    for (int i = 0; i < course.moments; i++)
        json_array_append_new(moments, moment_json(&course.moment[i]));
    json_t *j = json_pack("{s:I, s:i, s:o, s:o}", "total", (json_int_t)course.total, "peak",
                          course.peak, "parts", parts, "moments", moments);
    arena_release(&a);
    return j;
}
