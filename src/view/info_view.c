#include "view/info_view.h"

#include "backend/backend.h"
#include "backend/communicator.h"
#include "base/isa.h"
#include "base/str.h"
#include "check/chosen.h"
#include "present/table_form.h"

#include <jansson.h>
#include <string.h>

/* Optional libraries, and the effect of building without them. */
static const struct {
    const char *library, *without;
} optional[] = {
    {"oneDNN",
     "matmuls on a CPU are slower, and several times slower in bfloat16 with AMX; install oneDNN 2 "
     "or 3 (`make deps`) and run `make` again"},
    {"libcurl", "`strobe data` cannot download"},
};

/* The cost of a missing or disabled instruction set. docs/MEASURING.md has the measurements. */
static const char *const without[ISA_COUNT] = {
    [ISA_AMX] = "matmuls in bfloat16 take 4 to 7 times as long",
    [ISA_AVX512_BF16] =
        "bfloat16 is converted to float32 before each multiplication: it saves memory but no time",
    [ISA_AVX512] = "a step in float32 takes 1.5 times as long",
    [ISA_AVX2] = "a step in float32 takes 2.7 times as long as with AVX2",
    [ISA_SSE2] = "matmuls use the built-in kernels, compiled for any processor",
    [ISA_NEON] = "kernels use vectors only where the compiler does so by itself",
};

/* The float types and the words for them in the setting `dtype`. */
static const struct {
    const char *name;
    enum dtype dtype;
} dtypes[] = {{"float32", DT_F32}, {"bfloat16", DT_BF16}};

static const char *dtype_word(enum dtype dtype)
{
    for (int d = 0; d < COUNT_OF(dtypes); d++)
        if (dtypes[d].dtype == dtype) return dtypes[d].name;
    BUG_IF(true, "float type %d", (int)dtype);
}

static bool has_library(const struct environment *e, const char *name)
{
    bool found = false;
    for (int i = 0; i < e->libraries; i++) found |= !strcmp(e->library[i].name, name);
    return found;
}

/* Prints the selected kernels by float type, and what computes matmuls. */
static void print_kernels(struct str *s)
{
    const struct backend *cpu = backend_find("cpu");
    const char *library = cpu->kernels.library_isa();
    for (int d = 0; d < COUNT_OF(dtypes); d++) {
        struct chosen c[CHOSEN_MOST];
        int n = chosen_variants(cpu, dtypes[d].dtype, c);
        str_printf(s, "%-10s %-10s", d ? "" : "kernels", dtypes[d].name);
        for (int i = 0; i < n; i++)
            str_printf(s, "%s%d %s", i ? ", " : " ", c[i].operators, c[i].variant);
        str_append(s, n ? " (operators)\n" : " none\n");
    }
    str_printf(s, "%-10s %s%s\n", "matmuls", library ? "oneDNN, on " : "built-in kernels",
               library ? library : "");
    str_printf(s, "%-10s %s\n", "fastest", dtype_word(chosen_fastest(cpu)));
}

/* Prints how the ranks of a training can run: as MPI processes, or as threads. */
static void print_ranks(struct str *s)
{
    if (communicator_find_mpi() == ST_OK)
        str_printf(s, "%-10s joined by MPI, or threads of one process\n", "ranks");
    else
        str_printf(s, "%-10s threads of one process; %s\n", "ranks", fail_message());
}

static void print_isa(const char *names, struct str *s)
{
    str_printf(s, "isa        %s; the processor reports %s\n", isa_words[isa_used()],
               *names ? names : "no relevant set");
    for (enum isa i = isa_used() - 1; i > ISA_AUTO; i--)
        if (isa_exists(i))
            str_printf(s, "%-10s %-11s %s: %s\n", "", isa_words[i],
                       i < isa_widest() ? "missing" : "not used", without[i]);
}

/* "NVIDIA H200, compute capability 9.0, 132 SMs, 139.8 GiB" or "none: ..." */
static const char *gpu_words(int number, struct arena *a)
{
    const struct backend *cuda = backend_find("cuda");
    struct device_facts f;
    char memory[32];
    if (!cuda)
        return "none: this build has no CUDA backend (it was built without the CUDA headers)";
    if (cuda->devices.describe(number, &f) != ST_OK)
        return arena_printf(a, "none: %s", fail_message());
    return arena_printf(a, "%s, compute capability %s, %d SMs, %s", f.name, f.capability,
                        f.processors, str_bytes(memory, (double)f.bytes));
}

static int gpus(void)
{
    const struct backend *cuda = backend_find("cuda");
    return cuda ? cuda->devices.count() : 0;
}

/* Library i of the GPU backend: first the libraries for training, then the one for profiles. */
static bool device_library(int i, struct device_library *ret)
{
    const struct backend *cuda = backend_find("cuda");
    if (!cuda) return false;
    if (backend_library_at(cuda, i, ret)) return true;
    if (!cuda->trace || (i > 0 && !backend_library_at(cuda, i - 1, ret))) return false;
    cuda->trace->library(ret);
    return true;
}

static void print_gpus(struct str *s, struct arena *a)
{
    struct device_library l;
    int n = gpus();
    str_printf(s, "gpu        %s\n", gpu_words(0, a));
    for (int i = 1; i < n; i++) str_printf(s, "%-10s %s\n", "", gpu_words(i, a));
    for (int i = 0; device_library(i, &l); i++) {
        str_printf(s, "%-10s %-10s ", "", l.name);
        if (l.unavailable_because)
            str_printf(s, "missing: %s; %s\n", l.unavailable_because, l.consequence);
        else
            str_printf(s, "%s\n", *l.version ? l.version : "found");
    }
}

static void print_text(const struct environment *e, const char *isa, struct str *s, struct arena *a)
{
    char memory[32];
    str_printf(s, "version    %s (%s, %s)\n", e->version, e->commit, e->mode);
    str_printf(s, "compiler   %s\n", e->compiler);
    str_printf(s, "machine    %s, %s, %s\n", e->host, e->os, e->kernel);
    str_printf(s, "cpu        %s\n", e->cpu);
    print_isa(isa, s);
    print_kernels(s);
    print_ranks(s);
    str_printf(s,
               "threads    %d, one per physical core that this process may use; the machine has %d "
               "logical processors\n",
               e->threads, e->cores);
    str_printf(s, "memory     %s\n", str_bytes(memory, (double)e->memory_bytes));
    for (int i = 0; i < e->libraries; i++)
        str_printf(s, "%-10s %-10s %s\n", i ? "" : "libraries", e->library[i].name,
                   e->library[i].version);
    for (int i = 0; i < COUNT_OF(optional); i++)
        if (!has_library(e, optional[i].library))
            str_printf(s, "%-10s %-10s not in this build: %s\n", "", optional[i].library,
                       optional[i].without);
    str_append(s, "backends  ");
    for (int i = 0; backend_at(i); i++) str_printf(s, " %s", backend_at(i)->name);
    str_append(s, "\n");
    print_gpus(s, a);
}

static json_t *kernels_json(void)
{
    json_t *all = json_object();
    for (int d = 0; d < COUNT_OF(dtypes); d++) {
        struct chosen c[CHOSEN_MOST];
        json_t *of = json_object();
        int n = chosen_variants(backend_find("cpu"), dtypes[d].dtype, c);
        for (int i = 0; i < n; i++)
            json_object_set_new(of, c[i].variant, json_integer(c[i].operators));
        json_object_set_new(all, dtypes[d].name, of);
    }
    return all;
}

/* The instruction set in use, the available sets, and the cost of each missing wider set. */
static json_t *isa_json(void)
{
    json_t *there = json_array(), *missing = json_object();
    for (enum isa i = isa_widest(); i < ISA_COUNT; i++)
        if (isa_exists(i)) json_array_append_new(there, json_string(isa_words[i]));
    for (enum isa i = isa_used() - 1; i > ISA_AUTO; i--)
        if (isa_exists(i)) json_object_set_new(missing, isa_words[i], json_string(without[i]));
    return json_pack("{s:s, s:o, s:o, s:s?}", "used", isa_words[isa_used()], "available", there,
                     "without", missing, "onednn", backend_find("cpu")->kernels.library_isa());
}

static json_t *gpus_json(void)
{
    json_t *all = json_array();
    struct device_facts f;
    for (int i = 0, n = gpus(); i < n; i++)
        if (backend_find("cuda")->devices.describe(i, &f) == ST_OK)
            json_array_append_new(all, json_pack("{s:s, s:s, s:i, s:I, s:I}", "name", f.name,
                                                 "compute_capability", f.capability, "processors",
                                                 f.processors, "memory_bytes", (json_int_t)f.bytes,
                                                 "l2_bytes", (json_int_t)f.cache_bytes));
    return all;
}

/* "version" is null if a library is missing; "missing" says why, "without" the cost. */
static json_t *gpu_libraries_json(void)
{
    json_t *all = json_object();
    struct device_library l;
    for (int i = 0; device_library(i, &l); i++)
        json_object_set_new(all, l.name,
                            json_pack("{s:s?, s:s?, s:s?}", "version",
                                      l.unavailable_because ? NULL : l.version, "missing",
                                      l.unavailable_because, "without",
                                      l.unavailable_because ? l.consequence : NULL));
    return all;
}

static void print_json(const struct environment *e, const char *isa, struct str *s, struct arena *a)
{
    json_t *libraries = json_object(), *backends = json_array();
    for (int i = 0; i < e->libraries; i++)
        json_object_set_new(libraries, e->library[i].name, json_string(e->library[i].version));
    for (int i = 0; backend_at(i); i++)
        json_array_append_new(backends, json_string(backend_at(i)->name));
    json_t *j = json_pack(
        "{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:o, "
        "s:o, s:s, s:o, s:o, s:o, s:o, s:s}",
        "v", 1, "version", e->version, "commit", e->commit, "mode", e->mode, "compiler",
        e->compiler, "host", e->host, "os", e->os, "kernel", e->kernel, "cpu", e->cpu, "isa", isa,
        "cores", e->cores, "threads", e->threads, "memory_bytes", (json_int_t)e->memory_bytes,
        "libraries", libraries, "backends", backends, "gpu", gpu_words(0, a), "gpus", gpus_json(),
        "gpu_libraries", gpu_libraries_json(), "isa_sets", isa_json(), "kernels", kernels_json(),
        "fastest_dtype", dtype_word(chosen_fastest(backend_find("cpu"))));
    json_print(j, s);
}

void info_view_print(const struct environment *e, bool json, struct str *s, struct arena *a)
{
    if (json)
        print_json(e, isa_names(a), s, a);
    else
        print_text(e, isa_names(a), s, a);
}
