#include "data/source.h"

#include "base/file.h"
#include "base/free_memory.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/download.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct remote_file tiny_shakespeare = {
    .url =
        "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
    .sha256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    .bytes = 1115394,
};

/* Prints each verse on a line: "Ge1:1 In the beginning ...". */
static const char bible_command[] = "bible -f gen1:1-rev22:21 2>/dev/null";
enum { BIBLE_BYTES_LEAST = 4000000, COMMAND_NOT_FOUND = 127 };

/* Fails if there is too little memory for the whole text and its tokens of two bytes. */
static enum status check_text(const char *path)
{
    int fd;
    int64_t bytes, free = free_memory_bytes();
    TRY(file_open(path, &fd, &bytes));
    close(fd);
    if (free < 0 || bytes <= free / 3) return ST_OK;
    char size[32], available[32];
    return fail(ST_UNSUPPORTED,
                "%s has %s, and making a data set needs three times as much memory, but %s are "
                "free: use a shorter text",
                path, str_bytes(size, (double)bytes), str_bytes(available, (double)free));
}

static const char input_name[] = "the standard input";

static enum status read_input(struct source_text *t, struct arena *a)
{
    struct str s = {};
    char block[65536];
    int64_t n;
    enum status st;
    while ((st = file_read_next(STDIN_FILENO, input_name, block, sizeof block, &n)) == ST_OK && n)
        str_append_bytes(&s, block, n);
    char *text = arena_alloc(a, s.len + 1);
    memcpy(text, str_text(&s), (size_t)s.len + 1);
    *t = (struct source_text){.text = text, .bytes = s.len, .from = input_name};
    str_release(&s);
    return st;
}

/* Fails if the first bytes are those of a compressed file; the message has the command that unpacks
 * the file. */
static enum status check_packed(const struct source_text *t)
{
    static const char *const packed[][2] = {
        {"\x1f\x8b", "gunzip -c"},        {"BZh91AY", "bunzip2 -c"},  {"\xfd\x37zXZ", "xz -dc"},
        {"\x28\xb5\x2f\xfd", "zstd -dc"}, {"PK\x03\x04", "unzip -p"},
    };
    for (int i = 0; i < COUNT_OF(packed); i++)
        if (!strncmp(t->text, packed[i][0], strlen(packed[i][0])))
            return fail(ST_FORMAT,
                        "%s is compressed: unpack it first, as in `%s FILE > text.txt`, and give "
                        "text.txt",
                        t->from, packed[i][1]);
    return ST_OK;
}

enum status source_file(struct source_text *t, const char *path, struct arena *a)
{
    if (strcmp(path, "-") == 0) {
        TRY(read_input(t, a));
    } else {
        char *text;
        TRY(check_text(path));
        TRY(file_read(path, a, &text, &t->bytes));
        t->text = text;
        t->from = arena_strdup(a, path);
    }
    if (t->bytes == 0) return fail(ST_FORMAT, "%s is empty: nothing to learn from", t->from);
    return check_packed(t);
}

/* Copies the text to `to`, without a byte order mark and with CR LF and CR converted to LF. Returns
 * the number of bytes in `to`. */
static int64_t to_unix(const struct source_text *t, char *to)
{
    int64_t n = 0, i = strncmp(t->text, BYTE_ORDER_MARK, 3) ? 0 : 3;
    for (; i < t->bytes; i++) {
        char c = t->text[i];
        if (c == '\r' && t->text[i + 1] == '\n') continue;
        to[n++] = c == '\r' ? '\n' : c;
    }
    return n;
}

void source_newlines(struct source_text *t, bool convert, struct arena *a)
{
    bool mark = !strncmp(t->text, BYTE_ORDER_MARK, 3),
         returns = memchr(t->text, '\r', (size_t)t->bytes);
    if (!mark && !returns) return;
    if (convert) {
        char *text = arena_alloc(a, t->bytes + 1);
        t->bytes = to_unix(t, text);
        text[t->bytes] = '\0';
        t->text = text;
        return;
    }
    log_warning("%s %s%s%s, which %s; --newlines=unix removes %s", t->from,
                mark ? "begins with a byte order mark" : "", mark && returns ? " and " : "",
                returns ? "has line ends with carriage returns (CR LF or CR)" : "",
                returns ? "become tokens" : "becomes a token", returns ? "them" : "it");
}

/* Reads the text from the cache; false: the file is missing, or its SHA-256 is wrong. */
static bool read_cached(struct source_text *t, const char *path, struct arena *a)
{
    if (!file_exists(path)) return false;
    struct source_text found;
    if (source_file(&found, path, a) != ST_OK) {
        log_warning("%s; downloading it again", fail_message());
        return false;
    }
    char digest[HASH_HEX];
    hash_bytes(found.text, found.bytes, digest);
    if (strcmp(digest, tiny_shakespeare.sha256) != 0) {
        log_warning("%s is damaged (SHA-256 %.12s...): downloading it again", path, digest);
        return false;
    }
    *t = found;
    t->from = arena_printf(a, "the cache, %s", path);
    return true;
}

static const char shakespeare_name[] = "tinyshakespeare.txt";

static enum status read_downloaded(struct source_text *t, struct arena *a)
{
    const char *path, *folder = file_cache_folder(a);
    if (!folder) return fail(ST_IO, "there is no folder for the cache: HOME is not set");
    path = arena_printf(a, "%s/%s", folder, shakespeare_name);
    if (read_cached(t, path, a)) return ST_OK;
    TRY(file_make_dirs(folder));
    TRY(download(&tiny_shakespeare, path));
    TRY(source_file(t, path, a));
    t->from = tiny_shakespeare.url;
    return ST_OK;
}

static enum status read_bible(struct source_text *t, struct arena *a)
{
    FILE *pipe = popen(bible_command, "re");
    if (!pipe) return file_fail("bible", errno);
    struct str s = {};
    char block[65536];
    for (size_t n; (n = fread(block, 1, sizeof block, pipe)) > 0;)
        str_append_bytes(&s, block, (int64_t)n);
    int end = pclose(pipe);
    enum status st = ST_OK;
    if (WIFEXITED(end) && WEXITSTATUS(end) == COMMAND_NOT_FOUND)
        st = fail(ST_IO, "the program `bible` is not installed: apt install bible-kjv");
    else if (end != 0 || s.len < BIBLE_BYTES_LEAST)
        st = fail(ST_IO, "`%s` gave %lld bytes and ended with %d", bible_command, (long long)s.len,
                  end);
    else if ((int64_t)strlen(str_text(&s)) != s.len)
        st = fail(ST_FORMAT, "the output of `%s` contains a zero byte: it is not text",
                  bible_command);
    else
        *t = (struct source_text){.text = arena_strdup(a, str_text(&s)),
                                  .bytes = s.len,
                                  .from = "the King James Bible of Debian's bible-kjv"};
    str_release(&s);
    return st;
}

enum status source_shakespeare_path(const char **ret, struct arena *a)
{
    struct source_text t;
    enum status st = read_downloaded(&t, a);
    if (st != ST_OK) return fail_in(st, "no Tiny Shakespeare; give a text with --from FILE");
    *ret = arena_printf(a, "%s/%s", file_cache_folder(a), shakespeare_name);
    return ST_OK;
}

enum status source_shakespeare(struct source_text *t, const char *from, bool fall_back,
                               struct arena *a)
{
    if (from) return source_file(t, from, a);
    enum status st = read_downloaded(t, a);
    if (st == ST_OK) return ST_OK;
    const char *why = arena_strdup(a, fail_message());
    if (!fall_back)
        return fail(st,
                    "no Tiny Shakespeare: %s; give a text with --from FILE, or use the King James "
                    "Bible of Debian's bible-kjv with --fall_back",
                    why);
    log_info(
        "No Tiny Shakespeare (%s): using the King James Bible instead, so losses are not those of "
        "Shakespeare.",
        why);
    st = read_bible(t, a);
    return st == ST_OK ? st : fail_in(st, "no Tiny Shakespeare (%s), and no King James Bible", why);
}
