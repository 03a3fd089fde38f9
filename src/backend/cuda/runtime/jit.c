#include "backend/cuda/runtime/jit.h"

#include "backend/cuda/runtime/jit_cache.h"
#include "backend/cuda/runtime/launch.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct module {
    const char *text, *source, *options; /* `source` is NULL for a built-in source */
    char *image;                         /* NULL once it is loaded */
    int64_t bytes;
    bool cached; /* the image came from the cache folder and may be unusable */
    CUmodule loaded;
    char *failure; /* the error message */
};

struct jit {
    struct arena arena;
    char arch[16];
    const char *folder;
    struct module *module;
    int modules, capacity, made, loaded; /* the first `made` are compiled */
    int64_t compiling_ns, loading_ns;    /* so far */
};

void jit_arch_word(int arch, char ret_word[16])
{
    snprintf(ret_word, 16, "sm_%d%s", arch, arch >= 90 ? "a" : "");
}

void jit_archs(int *ret_oldest, int *ret_newest)
{
    enum { MOST = 64 };
    int arch[MOST], n = 0;
    const struct cuda_nvrtc *nvrtc = cuda_nvrtc(NULL);
    *ret_oldest = *ret_newest = 0;
    if (!nvrtc || nvrtc->nvrtcGetNumSupportedArchs(&n) != NVRTC_SUCCESS || n < 1 || n > MOST ||
        nvrtc->nvrtcGetSupportedArchs(arch) != NVRTC_SUCCESS)
        return;
    *ret_oldest = arch[0]; /* they are sorted */
    *ret_newest = arch[n - 1];
}

struct jit *jit_open(int arch)
{
    struct jit *j = HEAP_NEW(struct jit, 1);
    const char *folder = file_cache_folder(&j->arena);
    jit_arch_word(arch, j->arch);
    if (!folder) return j;
    folder = arena_printf(&j->arena, "%s/kernels", folder);
    if (trust_folder(folder, &j->arena, &j->folder) == ST_OK) return j;
    log_warning("compiled kernels are not kept: %s", fail_message());
    j->folder = NULL;
    return j;
}

void jit_close(struct jit *j)
{
    for (int i = 0; i < j->modules; i++) {
        free(j->module[i].image);
        free(j->module[i].failure);
        if (j->module[i].loaded) cuda_driver(NULL)->cuModuleUnload(j->module[i].loaded);
    }
    arena_release(&j->arena);
    free(j);
}

static bool same_source(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

int jit_request(struct jit *j, const char *text, const char *source, const char *options)
{
    for (int i = 0; i < j->modules; i++) {
        const struct module *m = &j->module[i];
        if (!strcmp(m->text, text) && !strcmp(m->options, options) &&
            same_source(m->source, source))
            return i;
    }
    ARENA_GROW(&j->arena, j->module, j->modules, j->capacity);
    j->module[j->modules] =
        (struct module){.text = arena_strdup(&j->arena, text),
                        .source = source ? arena_strdup(&j->arena, source) : NULL,
                        .options = arena_strdup(&j->arena, options)};
    return j->modules++;
}

const char *const jit_options[] = {"-std=c++17", "--ptxas-options=-v",
                                   "--extra-device-vectorization", NULL};

enum { OPTIONS = 64, LOG_SHOWN = 600 };

/* Splits options at blanks and appends them to `option`; they point into `copy`. */
static int split_options(char *copy, const char *option[], int n)
{
    for (char *at = strtok_r(copy, " ", &copy); at; at = strtok_r(NULL, " ", &copy)) {
        BUG_IF(n == OPTIONS, "too many options for a kernel");
        option[n++] = at;
    }
    return n;
}

static nvrtcResult create(const struct cuda_nvrtc *nvrtc, const char *text, const char *source,
                          nvrtcProgram *ret)
{
    const char *header[32], *name[32];
    int headers = 0;
    int64_t bytes;
    for (int i = 0; cuda_text_name(i); i++) {
        if (!strstr(cuda_text_name(i), ".cuh")) continue;
        BUG_IF(headers == COUNT_OF(header), "too many headers of kernel sources");
        name[headers] = cuda_text_name(i);
        header[headers++] = cuda_text(cuda_text_name(i), &bytes);
    }
    if (!source) source = cuda_text(text, &bytes);
    return nvrtc->nvrtcCreateProgram(ret, source, text, headers, header, name);
}

static char *log_of(const struct cuda_nvrtc *nvrtc, nvrtcProgram program)
{
    size_t bytes = 0;
    if (nvrtc->nvrtcGetProgramLogSize(program, &bytes) != NVRTC_SUCCESS) bytes = 0;
    char *log = heap_zeroed((int64_t)bytes + 1);
    if (bytes) (void)nvrtc->nvrtcGetProgramLog(program, log);
    return log;
}

/* Sets *ret and *ret_log also on failure; the caller destroys *ret and frees *ret_log. */
static enum status compile(const struct cuda_nvrtc *nvrtc, const char *text, const char *source,
                           const char *options, const char *arch, nvrtcProgram *ret, char **ret_log)
{
    const char *option[OPTIONS];
    int n = 0;
    char target[32], copy[LAUNCH_OPTIONS];
    snprintf(target, sizeof target, "--gpu-architecture=%s", arch);
    snprintf(copy, sizeof copy, "%s", options);
    for (; jit_options[n]; n++) option[n] = jit_options[n];
    option[n] = target;
    n = split_options(copy, option, n + 1);
    nvrtcResult r = create(nvrtc, text, source, ret);
    if (r == NVRTC_SUCCESS) r = nvrtc->nvrtcCompileProgram(*ret, n, option);
    *ret_log = log_of(nvrtc, *ret);
    if (r == NVRTC_SUCCESS) return ST_OK;
    return fail(ST_DEVICE, "%s (%s, %s): %s\n%.*s", text, arch, options,
                nvrtc->nvrtcGetErrorString(r), LOG_SHOWN, *ret_log);
}

/* The PTX or the cubin of a compiled program, as malloc'ed bytes. */
static enum status get_result(const struct cuda_nvrtc *nvrtc, nvrtcProgram program, bool ptx,
                              const char *text, char **ret, int64_t *ret_bytes)
{
    size_t bytes = 0;
    nvrtcResult r =
        ptx ? nvrtc->nvrtcGetPTXSize(program, &bytes) : nvrtc->nvrtcGetCUBINSize(program, &bytes);
    *ret = heap_zeroed((int64_t)bytes + 1);
    *ret_bytes = (int64_t)bytes;
    if (r == NVRTC_SUCCESS)
        r = ptx ? nvrtc->nvrtcGetPTX(program, *ret) : nvrtc->nvrtcGetCUBIN(program, *ret);
    if (r == NVRTC_SUCCESS) return ST_OK;
    free(*ret);
    *ret = NULL;
    return fail(ST_DEVICE, "%s: %s", text, nvrtc->nvrtcGetErrorString(r));
}

static enum status make_result(const char *text, const char *source, const char *options,
                               const char *arch, bool ptx, char **ret, int64_t *ret_bytes,
                               char **ret_log)
{
    const char *why;
    char *log = NULL;
    nvrtcProgram program = NULL;
    const struct cuda_nvrtc *nvrtc = cuda_nvrtc(&why);
    if (ret_log) *ret_log = NULL;
    if (!nvrtc) return fail(ST_UNSUPPORTED, "kernels cannot be compiled: %s", why);
    enum status st = compile(nvrtc, text, source, options, arch, &program, &log);
    if (st == ST_OK) st = get_result(nvrtc, program, ptx, text, ret, ret_bytes);
    (void)nvrtc->nvrtcDestroyProgram(&program);
    if (ret_log)
        *ret_log = log;
    else
        free(log);
    return st;
}

enum status jit_compile(const char *text, const char *source, const char *options, const char *arch,
                        char **ret_image, int64_t *ret_bytes, char **ret_log)
{
    return make_result(text, source, options, arch, false, ret_image, ret_bytes, ret_log);
}

enum status jit_ptx(const struct jit *j, const char *text, const char *source, const char *options,
                    char **ret, char **ret_log)
{
    int64_t bytes;
    return make_result(text, source, options, j->arch, true, ret, &bytes, ret_log);
}

/* Reads a module's image from the cache, or compiles it. A second call, which follows if the driver
 * refuses the cached image, compiles it. Runs on any thread. */
static void make(struct jit *j, struct module *m)
{
    char path[1024];
    bool caches =
        j->folder && jit_cache_path(j->folder, m->text, m->source, m->options, j->arch, path);
    m->cached = caches && !m->cached && jit_cache_read(path, &m->image, &m->bytes);
    if (m->cached) return;
    if (jit_compile(m->text, m->source, m->options, j->arch, &m->image, &m->bytes, NULL) != ST_OK) {
        m->failure = heap_strdup(fail_message());
        return;
    }
    if (caches) jit_cache_write(path, m->image, m->bytes);
}

/* Words why an image cannot be loaded. A driver cannot load an image of a newer CUDA version. */
static enum status fail_load(CUresult r, const struct module *m)
{
    int major = 0, minor = 0, supported = cuda_driver_version();
    char text[160];
    bool known = cuda_nvrtc(NULL)->nvrtcVersion(&major, &minor) == NVRTC_SUCCESS;
    if (!known || supported >= 1000 * major)
        return fail_in(cuda_check(r, "load it"), "%s (%s)", m->text, m->options);
    cuda_error_text(r, text);
    return fail(ST_UNSUPPORTED,
                "the driver is too old for this NVRTC: it supports CUDA %d.%d, kernels were "
                "compiled for CUDA %d, and it reports: %s; update the driver, or install the NVRTC "
                "of CUDA %d",
                supported / 1000, supported % 1000 / 10, major, text, supported / 1000);
}

static void load(struct jit *j, struct module *m)
{
    CUresult r = cuda_driver(NULL)->cuModuleLoadData(&m->loaded, m->image);
    if (r != CUDA_SUCCESS && m->cached) {
        free(m->image);
        m->image = NULL;
        make(j, m);
        if (m->failure) return;
        r = cuda_driver(NULL)->cuModuleLoadData(&m->loaded, m->image);
    }
    if (r != CUDA_SUCCESS) {
        (void)!fail_load(r, m);
        m->failure = heap_strdup(fail_message());
    }
    free(m->image);
    m->image = NULL;
}

void jit_make(struct jit *j)
{
    int first = j->made, last = j->modules;
    if (first == last) return;
    struct progress p;
    int done = 0;
    int64_t start = clock_ns();
    progress_start(&p, "kernels", 0, last - first);
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = first; i < last; i++) {
        make(j, &j->module[i]);
#pragma omp critical(jit_progress)
        progress_show(&p, ++done, j->module[i].text);
    }
    progress_end(&p);
    j->made = last;
    j->compiling_ns += clock_ns() - start;
}

enum status jit_finish(struct jit *j)
{
    jit_make(j);
    int64_t start = clock_ns();
    for (; j->loaded < j->modules; j->loaded++) {
        struct module *m = &j->module[j->loaded];
        if (m->failure) continue; /* jit_function reports it */
        load(j, m);
    }
    j->loading_ns += clock_ns() - start;
    return ST_OK;
}

void jit_times(const struct jit *j, double *ret_compile_ms, double *ret_load_ms)
{
    *ret_compile_ms = (double)j->compiling_ns * 1e-6;
    *ret_load_ms = (double)j->loading_ns * 1e-6;
}

static enum status fail_module(const struct module *m)
{ /* a sentence, then lines of the compiler's log */
    int sentence = (int)strcspn(m->failure, "\n");
    return fail(ST_DEVICE, "%.*s\n%s", sentence, m->failure,
                m->failure + sentence + (m->failure[sentence] == '\n'));
}

enum status jit_image(const struct jit *j, int number, const char **ret, int64_t *ret_bytes)
{
    const struct module *m = &j->module[number];
    if (m->failure) return fail_module(m);
    BUG_IF(!m->image, "%s is not compiled, or was loaded", m->text);
    *ret = m->image;
    *ret_bytes = m->bytes;
    return ST_OK;
}

enum status jit_function(struct jit *j, int number, const char *entry, CUfunction *ret)
{
    const struct module *m = &j->module[number];
    if (m->failure) return fail_module(m);
    BUG_IF(!m->loaded, "%s is not loaded", m->text);
    if (cuda_driver(NULL)->cuModuleGetFunction(ret, m->loaded, entry) == CUDA_SUCCESS) return ST_OK;
    return fail(ST_DEVICE, "%s has no kernel %s", m->text, entry);
}
