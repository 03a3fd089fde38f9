#include "profile_text.h"

#include "base/arena.h"

#include <string.h>

#define MATMULS "matrix products"
#define SCORES  "forward/block 0/attention/scores"

const struct profile_text_row profile_slow[] = {
    {SCORES, MATMULS, "MATMUL", "4 x 8 x 16", "onednn", 0, 2, 64000, 1000},
    {"forward/block 0/attention/softmax", "softmax", "SOFTMAX", "f32 (4,8)", "avx512", 0, 3, 1000,
     8000},
    {"forward/block 1/attention/softmax", "softmax", "SOFTMAX", "f32 (4,8)", "avx512", 1, 4, 1000,
     8000},
    {"forward/block 0/MLP/up", MATMULS, "MATMUL", "4 x 32 x 16", "onednn", 0, 2, 128000, 1000},
    {"forward/inputs and results", "inputs and results", NULL, NULL, "copy <host>", -1, 1, 0, 0},
    {NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0},
};
const struct profile_text_row profile_flash[] = {
    {"forward/block 0/attention/flash attention", "attention", "ATTENTION", "f32 (4,8)", "avx512",
     0, 3, 66000, 8000},
    {"forward/block 0/MLP/up", MATMULS, "LINEAR", "4 x 32 x 16", "onednn", 0, 3.5, 128000, 1000},
    {"forward/inputs and results", "inputs and results", NULL, NULL, "copy <host>", -1, 1, 0, 0},
    {NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0},
};

static const char *quoted_or_null(const char *text, struct arena *a)
{
    return text ? arena_printf(a, "\"%s\"", text) : "null";
}

static const char *range_text(const char *range, struct arena *a)
{
    char *copy = arena_strdup(a, range);
    const char *text = "";
    for (char *word = strtok(copy, "/"); word; word = strtok(NULL, "/"))
        text = arena_printf(a, "%s%s\"%s\"", text, *text ? "," : "", word);
    return text;
}

static const char *row_text(const struct profile_text_row *r, int node, struct arena *a)
{
    return arena_printf(
        a,
        "{\"plan\":%s,\"node\":%d,\"op\":%s,\"shape\":%s,\"dtype\":\"f32\",\"peak_of\":\"f32\","
        "\"phase\":\"forward\",\"range\":[%s],\"layer\":%s,\"family\":\"%s\",\"kernel\":\"%s\","
        "\"device_kernel\":null,\"flops\":%.0f,\"bytes\":%.0f,\"floor_ms\":%g,\"bound\":\"memory\","
        "\"per_step\":1,\"ms_per_step\":%g,\"run_ms\":{\"n\":5,\"median\":%g,\"mean\":%g,\"std\":0."
        "1,"
        "\"min\":%g,\"max\":%g}}",
        r->op ? "\"micro\"" : "null", node, quoted_or_null(r->op, a), quoted_or_null(r->shape, a),
        range_text(r->range, a), r->layer < 0 ? "null" : arena_printf(a, "%d", r->layer), r->family,
        r->kernel, r->flops, r->bytes, r->op ? 0.5 : 0, r->ms, r->ms - 0.1, r->ms, r->ms - 0.2,
        r->ms + 0.2);
}

const char *profile_text(const struct profile_text_row *row, struct arena *a)
{
    const char *rows = "";
    double ms = 0.5;
    for (int i = 0; row[i].range; i++) {
        rows = arena_printf(a, "%s%s%s", rows, i ? "," : "", row_text(&row[i], i, a));
        ms += row[i].ms;
    }
    return arena_printf(
        a,
        "{\"v\":1,\"plan\":{\"tokens_per_step\":1000},\"times_by\":\"clock\",\"steps\":5,\"step_"
        "ms\":{\"n\":5,\"mean\":%g,\"median\":%"
        "g},"
        "\"phase_ms\":{\"forward\":%g},\"idle\":{\"ms_per_step\":0.5,\"gaps_per_step\":3,"
        "\"phases\":{\"forward\":0.5}},\"machine\":{\"cpu\":\"A "
        "processor\",\"date\":\"2026-01-02T\","
        "\"l2_bytes\":2097152,\"products\":[{\"dtype\":\"f32\",\"flops_per_s\":4e11}],\"copies\":["
        "{\"bytes_per_thread\":1048576,\"bytes_per_s\":2e11},"
        "{\"bytes_per_thread\":2097152,\"bytes_per_s\":1e11},"
        "{\"bytes_per_thread\":67108864,\"bytes_per_s\":4e10}]},"
        "\"words\":[{\"about\":\"top kernel\",\"text\":\"it is <b>that</b>\"}],\"rows\":[%s],"
        "\"timeline\":{\"moments\":[[0,0,2000,0],[1,2000.5,5000,0],[99,1,2,0],[0,5,4,0]]},"
        "\"memory\":{\"parts\":[\"weights\",\"saved\",\"unused\"],\"peak\":1,"
        "\"moments\":[[0,100,0,300],[1,100,300,0]]}}",
        ms, ms, ms, rows);
}
