#include "engine/environment.h"

#include "base/file.h"
#include "base/json.h"

#ifdef HAVE_CURL
#include <curl/curl.h>
#endif
#ifdef HAVE_DNNL
#include <oneapi/dnnl/dnnl.h>
#endif
#include <gnu/libc-version.h>
#include <openssl/crypto.h>
#include <sched.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { ENVIRONMENT_VERSION = 1 };

static const char unknown[] = "unknown";

/* The value of the line "KEY SEPARATOR VALUE" in a file, without quotes around it. */
static const char *line_value(const char *path, const char *key, char separator, struct arena *a)
{
    char *text;
    int64_t bytes;
    if (file_read(path, a, &text, &bytes) != ST_OK) return unknown;
    size_t n = strlen(key);
    for (char *line = text; line && *line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, key, n) != 0) continue;
        char *from = line + n + strspn(line + n, " \t");
        if (*from != separator) continue;
        from += 1 + strspn(from + 1, " \t\"");
        return arena_printf(a, "%.*s", (int)strcspn(from, "\"\n"), from);
    }
    return unknown;
}

static void gather_libraries(struct environment *e, struct arena *a)
{
    environment_add_library(e, "glibc", gnu_get_libc_version());
    environment_add_library(e, "jansson", jansson_version_str());
    environment_add_library(e, "libcrypto", OpenSSL_version(OPENSSL_VERSION_STRING));
#ifdef HAVE_CURL
    environment_add_library(e, "libcurl", curl_version_info(CURLVERSION_NOW)->version);
#endif
#ifdef HAVE_DNNL
    const dnnl_version_t *v = dnnl_version();
    environment_add_library(e, "oneDNN", arena_printf(a, "%d.%d.%d", v->major, v->minor, v->patch));
#endif
    (void)a;
}

void environment_gather(struct environment *e, struct arena *a)
{
    *e = (struct environment){.version = unknown, .commit = unknown, .mode = unknown};
#ifdef __clang__
    e->compiler = "clang " __clang_version__;
#else
    e->compiler = "gcc " __VERSION__;
#endif
    e->cpu = line_value("/proc/cpuinfo", "model name", ':', a);
    e->os = line_value("/etc/os-release", "PRETTY_NAME", '=', a);
    struct utsname u;
    bool known = uname(&u) == 0;
    e->kernel = known ? arena_printf(a, "%s %s %s", u.sysname, u.release, u.machine) : unknown;
    e->host = known ? arena_strdup(a, u.nodename) : unknown;
    e->memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
    e->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    e->cores_usable = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : e->cores;
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(e->date, sizeof e->date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    gather_libraries(e, a);
}

void environment_add_library(struct environment *e, const char *name, const char *version)
{
    BUG_IF(e->libraries == ENVIRONMENT_LIBRARIES_MAX, "%s is one library too many", name);
    e->library[e->libraries++] = (struct environment_library){name, version};
}

enum status environment_write(const struct environment *e, const char *path)
{
    json_t *libraries = json_object();
    for (int i = 0; i < e->libraries; i++)
        json_object_set_new(libraries, e->library[i].name, json_string(e->library[i].version));
    json_t *root = json_pack(
        "{s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:s?, s:s?, s:s?, s:s?, "
        "s:s, s:s, s:s, s:o}",
        "v", ENVIRONMENT_VERSION, "version", e->version, "commit", e->commit, "mode", e->mode,
        "compiler", e->compiler, "cpu", e->cpu, "cores", e->cores, "cores_usable", e->cores_usable,
        "threads", e->threads, "memory_bytes", (json_int_t)e->memory_bytes, "isa", e->isa,
        "isa_library", e->isa_library, "device", e->device, "driver", e->driver, "os", e->os,
        "kernel", e->kernel, "date", e->date, "libraries", libraries);
    if (!root) return fail(ST_FORMAT, "%s: names reported by the system are not valid UTF-8", path);
    return json_write(root, JSON_INDENT(2), path);
}
