/* THE list of suites: what each is called, which text it reproduces, and what it runs. */
#include "base/str.h"
#include "suite/grid.h"
#include "suite/parts.h"

#include <string.h>

static const char small_models[] =
    "models of 2 to 6 layers and 128 to 384 columns instead of those of the text, 64 tokens a "
    "sequence";

/* clang-format off */
static const struct suite_grid
    e2e = {
        .sizes = cs336_sizes, .words = cs336_words, .small_sizes = cs336_small_sizes, .small_words = cs336_small_words,
        .phase = "forward,backward,step", .warmup = "5", .steps = 10, .vocab = CS336_VOCABULARY, .small_says = small_models,
    },
    warmup = {
        .sizes = cs336_sizes, .words = cs336_words, .small_sizes = cs336_small_sizes, .small_words = cs336_small_words,
        .phase = "forward,backward,step", .warmup = "0,1,2,5", .steps = 10, .vocab = CS336_VOCABULARY, .small_says = small_models,
        .note = "Each row has an engine of its own, opened for it. What a process makes once (threads, handles and kernels of libraries) is paid by "
                "the first row of all.",
    },
    precision = {
        .sizes = cs336_sizes, .words = cs336_words, .small_sizes = cs336_small_sizes, .small_words = cs336_small_words,
        .axis = {"dtype=float32,tfloat32,bfloat16"}, .small_axis = {"dtype=float32,bfloat16"},
        .phase = "forward,backward", .warmup = "5", .steps = 10, .vocab = CS336_VOCABULARY,
        .small_says = "models of 2 to 6 layers and 128 to 384 columns, 64 tokens a sequence; TF32 is of GPUs alone",
    };

const struct suite suites[] = {
    {"cs336-e2e",       "Forward, backward and whole steps of the CS336 models",          "CS336 assignment 2, 1.1.3 benchmarking_script (b)", .run = suite_run_grid, .grid = &e2e},
    {"cs336-warmup",    "The same after 0, 1, 2 and 5 steps of warm-up",                  "CS336 assignment 2, 1.1.3 benchmarking_script (c)", .run = suite_run_grid, .grid = &warmup},
    {"cs336-precision", "fp32, TF32 and bf16, forward and backward",                      "CS336 assignment 2, 1.1.5 benchmarking_mixed_precision (c)", .run = suite_run_grid, .grid = &precision},
    {0},
};
/* clang-format on */

enum status suite_find(const char *name, const struct suite **ret)
{
    const struct suite *nearest = suites;
    for (const struct suite *s = suites; s->name; s++) {
        *ret = s;
        if (!strcmp(s->name, name)) return ST_OK;
        if (str_distance(name, s->name) < str_distance(name, nearest->name)) nearest = s;
    }
    return fail(ST_USAGE, "there is no suite %s; the nearest is %s, --suite=list shows all", name,
                nearest->name);
}

enum status suite_run(const struct suite *s, const struct suite_request *r, struct sheet *ret,
                      struct arena *a)
{
    *ret = (struct sheet){.name = s->name, .title = s->title, .text = s->text};
    return s->run(s, r, ret, a);
}
