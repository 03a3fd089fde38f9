#include "data/download.h"

#ifdef HAVE_CURL

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"

#include <curl/curl.h>
#include <string.h>

enum {
    CONNECT_SECONDS = 5,
    STALL_SECONDS = 20, /* abort after this time below STALL_RATE bytes/s */
    STALL_RATE = 100,
    QUIET_MS = 2000, /* no progress line for shorter downloads */
};

struct receiver {
    const struct remote_file *expected;
    FILE *stream;
    struct hash *hash;
    int64_t bytes, start_ns;
    struct progress progress;
    bool shown, too_long;
};

static int64_t most_bytes(const struct remote_file *f)
{
    return f->bytes + (f->about ? f->bytes / 100 : 0);
}

static size_t receive(char *data, size_t size, size_t count, void *user)
{
    struct receiver *r = user;
    size_t n = size * count;
    r->too_long = r->bytes + (int64_t)n > most_bytes(r->expected);
    if (r->too_long) return 0; /* makes libcurl abort the transfer */
    hash_add(r->hash, data, (int64_t)n);
    r->bytes += (int64_t)n;
    if (!r->shown && clock_ms(r->start_ns, clock_ns()) > QUIET_MS) {
        progress_start(&r->progress, "download", r->bytes, r->expected->bytes);
        r->shown = true;
    }
    if (r->shown) progress_show(&r->progress, r->bytes, "");
    return fwrite(data, 1, n, r->stream);
}

static CURLcode transfer(CURL *curl, struct receiver *r, char error[CURL_ERROR_SIZE])
{
    curl_easy_setopt(curl, CURLOPT_URL, r->expected->url);
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)STALL_SECONDS);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_RATE);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
    return curl_easy_perform(curl);
}

static enum status check_download(const struct receiver *r, CURLcode code, const char *error,
                                  const char *digest)
{
    const struct remote_file *f = r->expected;
    if (r->too_long)
        return fail(ST_FORMAT,
                    "%s is longer than the expected %lld bytes; the download was rejected", f->url,
                    (long long)most_bytes(f));
    if (code != CURLE_OK)
        return fail(ST_IO, "%s: %s", f->url, error[0] ? error : curl_easy_strerror(code));
    if (strcmp(digest, f->sha256) != 0)
        return fail(
            ST_FORMAT,
            "%s is not the expected file and was rejected (%lld bytes, SHA-256 %.12s..., expected "
            "%lld bytes, %.12s...)",
            f->url, (long long)r->bytes, digest, (long long)f->bytes, f->sha256);
    return ST_OK;
}

enum status download(const struct remote_file *f, const char *path)
{
    struct file_writer w;
    TRY(file_writer_open(&w, path));
    char error[CURL_ERROR_SIZE] = "", digest[HASH_HEX];
    struct receiver r = {
        .expected = f, .stream = w.stream, .hash = hash_open(), .start_ns = clock_ns()};
    CURL *curl = curl_easy_init();
    CURLcode code = curl ? transfer(curl, &r, error) : CURLE_FAILED_INIT;
    curl_easy_cleanup(curl);
    if (r.shown) progress_end(&r.progress);
    hash_close(r.hash, digest);
    enum status st = check_download(&r, code, error, digest);
    if (st != ST_OK) {
        file_writer_discard(&w);
        return st;
    }
    return file_writer_commit(&w);
}

#else

enum status download(const struct remote_file *f, const char *)
{
    return fail(ST_UNSUPPORTED, "%s: this program was built without libcurl", f->url);
}

#endif
