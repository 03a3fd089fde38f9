/* THE list of suites: name, title, what it reproduces, and what it runs. */
#include "base/str.h"
#include "suite/grid.h"
#include "suite/suites.h"

#include <string.h>

enum {
    OF_TIMES = SUITE_STEPS | SUITE_LIMIT | SUITE_FULL,
    OF_CELLS = OF_TIMES | SUITE_SIZE | SUITE_WARMUP | SUITE_PHASE,
    OF_GRID = OF_CELLS | SUITE_ORDER | SUITE_EACH_STEP | SUITE_WIDE,
};

static const struct suite_small smaller_types[SUITE_SMALLS] = {
    {"size n_layer", "models of 2 to 6 layers"},
    {"size n_embd", "128 to 384 columns"},
    {"block_size", "64 tokens per sequence"},
    {"dtype", "no TF32, which needs a GPU"},
};

/* clang-format off */
static const struct suite_grid
    e2e = {
        .sizes = cs336_sizes, .words = cs336_words, .small_sizes = cs336_small_sizes,
        .phase = "forward,backward,step", .warmup = "5", .steps = 10, .vocab = CS336_VOCABULARY,
        .small = cs336_smaller,
    },
    precision = {
        .sizes = cs336_sizes, .words = cs336_words, .small_sizes = cs336_small_sizes,
        .axis = {"dtype=float32,tfloat32,bfloat16"}, .small_axis = {"dtype=float32,bfloat16"},
        .phase = "forward,backward", .warmup = "5", .steps = 10, .vocab = CS336_VOCABULARY,
        .small = smaller_types,
    };

const struct suite suites[] = {
    {"cs336-e2e",       "Forward, backward and whole steps of the CS336 models",          "CS336 assignment 2, 1.1.3 benchmarking_script (b)", .takes = OF_GRID, .run = suite_run_grid, .grid = &e2e},
    {"cs336-warmup",    "Times of a step after 0, 1, 2 and 5 warm-up steps",              "CS336 assignment 2, 1.1.3 benchmarking_script (c)", .takes = OF_CELLS | SUITE_ROUNDS, .run = suite_run_warmup},
    {"cs336-precision", "fp32, TF32 and bf16, forward and backward",                      "CS336 assignment 2, 1.1.5 benchmarking_mixed_precision (c)", .takes = OF_GRID, .run = suite_run_grid, .grid = &precision},
    {"cs336-profile",   "Parts of a step by the clock and by the profiler: kernels, matmuls, softmax", "CS336 assignment 2, 1.1.4 nsys_profile", .takes = SUITE_SIZE | OF_TIMES, .machine = true, .run = suite_run_profile},
    {"cs336-memory",    "Peak memory, what a block saves, recomputation of blocks: all from plans", "CS336 assignment 2, memory_profiling and (2026) gradient_checkpointing", .takes = SUITE_SIZE | SUITE_LIMIT, .run = suite_run_memory},
    {"cs336-attention", "Attention alone, batch 8, one head: unfused at two rungs, and flash",  "CS336 assignment 2, pytorch_attention and torch_compile (a)", .takes = OF_TIMES, .run = suite_run_attention},
    {"cs336-flash",     "Causal flash and unfused attention, batch 1, up to 65536 tokens", "CS336 assignment 2, flash_benchmarking", .takes = OF_TIMES, .run = suite_run_flash},
    {"nanogpt-attention", "shakespeare_char trained with unfused and with flash attention",    "nanoGPT, config/train_shakespeare_char.py", .takes = SUITE_ITERS | SUITE_FULL, .runs = true, .run = suite_run_nanogpt},
    {"attention-block", "The kernels of one attention block, unfused and flash",            "the attention block of configs/attention_block.conf", .takes = OF_TIMES, .machine = true, .run = suite_run_block},
    {"ladder",          "GPT-2 124M with optimizations added one by one",                    "Karpathy's \"Let's reproduce GPT-2 (124M)\"", .takes = OF_TIMES, .machine = true, .run = suite_run_ladder},
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
    return fail(ST_USAGE, "there is no suite %s; did you mean %s? --suite=list shows them all",
                name, nearest->name);
}

enum status suite_run(const struct suite *s, const struct suite_request *r, struct sheet *ret,
                      struct arena *a)
{
    TRY(suite_check_options(s, r));
    *ret = (struct sheet){.name = s->name, .title = s->title, .text = s->text};
    struct suite_request request = *r;
    request.grid = s->grid;
    return s->run(&request, ret, a);
}
