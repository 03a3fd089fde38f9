/* strobe info: this build, this machine, and what can run here. */
#include "backend/backend.h"
#include "base/host.h"
#include "base/opt.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/version.h"

#include <jansson.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef HAVE_CURL
#include <curl/curl.h>
#endif
#ifdef HAVE_DNNL
#include <oneapi/dnnl/dnnl.h>
#endif

enum { LIBRARIES = 4 };

/* Libraries by name; one that this build lacks has no version, and a sentence on what is lost. */
struct library {
    const char *name, *version, *without;
};

static void read_libraries(struct library rows[LIBRARIES], struct arena *a)
{
    (void)a; /* without oneDNN */
    rows[0] = (struct library){"oneDNN", NULL, "matrix products run on the program's own loops"};
    rows[1] = (struct library){"libcurl", NULL, "`strobe data` cannot download"};
    rows[2] = (struct library){"jansson", jansson_version_str(), ""};
    rows[3] = (struct library){"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING), ""};
#ifdef HAVE_DNNL
    const dnnl_version_t *dnnl = dnnl_version();
    rows[0].version = arena_printf(a, "%d.%d.%d", dnnl->major, dnnl->minor, dnnl->patch);
#endif
#ifdef HAVE_CURL
    rows[1].version = curl_version_info(CURLVERSION_NOW)->version;
#endif
}

#ifdef __clang__
static const char compiler[] = __VERSION__;
#else
static const char compiler[] = "gcc " __VERSION__;
#endif
static const char gpu[] = "no CUDA backend in this build";

static void print_text(const struct host *h, const struct library *library)
{
    char total[32], available[32];
    printf("version    %s (%s, %s)\n", version_number, version_commit, version_mode);
    printf("compiler   %s\n", compiler);
    printf("machine    %s, %s\n", h->name, h->system);
    printf("cpu        %s\n", h->cpu);
    printf("isa        %s\n", *h->isa ? h->isa : "nothing beyond the plain one");
    printf("cores      %lld, of which this process may use %lld\n", (long long)h->processors,
           (long long)h->threads);
    printf("memory     %s, %s available\n", str_bytes(total, (double)h->memory_bytes),
           str_bytes(available, (double)h->memory_free_bytes));
    for (int i = 0; i < LIBRARIES; i++) {
        printf("%-10s %-8s ", i ? "" : "libraries", library[i].name);
        if (library[i].version)
            printf("%s\n", library[i].version);
        else
            printf("not in this build: %s\n", library[i].without);
    }
    printf("backends  ");
    for (int i = 0; backend_at(i); i++) printf(" %s", backend_at(i)->name);
    printf("\ngpu        %s\n", gpu);
}

static void print_json(const struct host *h, const struct library *library)
{
    json_t *libs = json_object(), *backends = json_array();
    for (int i = 0; i < LIBRARIES; i++)
        json_object_set_new(libs, library[i].name,
                            library[i].version ? json_string(library[i].version) : json_null());
    for (int i = 0; backend_at(i); i++)
        json_array_append_new(backends, json_string(backend_at(i)->name));
    json_t *j = json_pack(
        "{s:i,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:o,s:o,s:s}", "v", 1, "version",
        version_number, "commit", version_commit, "mode", version_mode, "compiler", compiler,
        "machine", h->name, "system", h->system, "cpu", h->cpu, "isa", h->isa, "processors",
        (json_int_t)h->processors, "threads", (json_int_t)h->threads, "memory_bytes",
        (json_int_t)h->memory_bytes, "memory_free_bytes", (json_int_t)h->memory_free_bytes,
        "libraries", libs, "backends", backends, "gpu", gpu);
    char *text = json_dumps(j, JSON_INDENT(2));
    BUG_IF(!text, "facts about this machine that are no JSON");
    printf("%s\n", text);
    free(text);
    json_decref(j);
}

enum status cmd_info(int argc, char **argv)
{
    bool json = false;
    const struct opt options[] = {{"json", OPT_FLAG, &json, NULL, "as one JSON object"}, {0}};
    TRY(opt_parse(options, &argc, argv, NULL));
    if (argc) return fail(ST_USAGE, "info takes no words; found %s", argv[0]);
    struct arena a = {0};
    struct host h;
    struct library library[LIBRARIES];
    host_read(&h, &a);
    read_libraries(library, &a);
    if (json)
        print_json(&h, library);
    else
        print_text(&h, library);
    arena_release(&a);
    return ST_OK;
}
