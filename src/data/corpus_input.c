#include "data/corpus_input.h"

#include "base/file.h"
#include "base/interrupt.h"
#include "base/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct listing {
    struct corpus_input *c;
    struct stat data_dir; /* a folder of data sets, not of texts, which add_folder skips */
    int capacity;
    struct arena *a;
};

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && !strcmp(name + n - m, end);
}

static bool is_jsonl(const char *name)
{
    return ends_in(name, ".jsonl") || ends_in(name, ".jsonl.gz") || ends_in(name, ".jsonl.zst");
}

static enum status add_file(struct listing *l, const char *path, const char *name)
{
    int fd;
    int64_t bytes;
    TRY(file_open(path, &fd, &bytes));
    close(fd);
    ARENA_GROW(l->a, l->c->file, l->c->files, l->capacity);
    l->c->file[l->c->files++] = (struct corpus_file){path, is_jsonl(name), bytes, -1};
    l->c->bytes += bytes;
    return ST_OK;
}

static bool is_data_dir(const struct listing *l, const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && s.st_dev == l->data_dir.st_dev && s.st_ino == l->data_dir.st_ino;
}

static int compare(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Adds the files of a folder; names that begin with a dot are skipped. */
static enum status add_folder(struct listing *l, const char *path, int depth)
{
    enum { DEEPEST = 64 };
    struct file_entries e;
    if (depth > DEEPEST) return fail(ST_USAGE, "%s: folders are nested too deep", path);
    TRY(file_list(path, l->a, &e));
    if (e.count) qsort(e.name, (size_t)e.count, sizeof *e.name, compare);
    for (int i = 0; i < e.count; i++) {
        const char *inner = arena_printf(l->a, "%s/%s", path, e.name[i]);
        if (e.name[i][0] == '.' || is_data_dir(l, inner)) continue;
        TRY(file_is_dir(inner) ? add_folder(l, inner, depth + 1) : add_file(l, inner, e.name[i]));
    }
    return ST_OK;
}

static const char input_name[] = "the standard input";

static enum status copy(int to, const char *path)
{
    char block[1 << 16];
    for (int64_t n = 1, done; n > 0;) {
        TRY(interrupt_wait(STDIN_FILENO));
        TRY(file_read_next(STDIN_FILENO, input_name, block, sizeof block, &n));
        TRY(file_append(to, path, block, n, &done));
    }
    return ST_OK;
}

/* Copies the standard input to an unlinked file, because it is read twice. */
static enum status add_input(struct listing *l, const char *spool)
{
    char path[FILE_TEMPORARY];
    TRY(file_make_dirs(spool));
    TRY(file_temporary_name(arena_printf(l->a, "%s/.input", spool), path));
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return file_fail(path, errno);
    unlink(path);
    enum status st = copy(fd, arena_printf(l->a, "a copy of the standard input in %s", spool));
    int64_t bytes = lseek(fd, 0, SEEK_END);
    ARENA_GROW(l->a, l->c->file, l->c->files, l->capacity);
    l->c->file[l->c->files++] = (struct corpus_file){input_name, false, bytes, fd};
    l->c->bytes += bytes;
    return st;
}

enum status corpus_input_open(struct corpus_input *c, const char *const *from, int n,
                              const char *spool, struct arena *a)
{
    struct listing l = {.c = c, .a = a};
    if (stat(spool, &l.data_dir) != 0) l.data_dir = (struct stat){};
    *c = (struct corpus_input){};
    for (int i = 0; i < n; i++) {
        int before = c->files;
        if (!strcmp(from[i], "-"))
            TRY(add_input(&l, spool));
        else if (file_is_dir(from[i]))
            TRY(add_folder(&l, from[i], 0));
        else
            TRY(add_file(&l, from[i], from[i]));
        if (c->files == before) return fail(ST_USAGE, "%s has no files", from[i]);
    }
    return corpus_input_rewind(c);
}

static enum status open_file(struct corpus_input *c)
{
    int fd;
    int64_t bytes;
    const struct corpus_file *f = &c->file[c->at];
    unpack_close(c->open);
    c->open = NULL;
    if (f->spooled >= 0) {
        fd = dup(f->spooled);
        if (fd < 0 || lseek(fd, 0, SEEK_SET) != 0) return file_fail(f->path, errno);
    } else {
        TRY(file_open(f->path, &fd, &bytes));
    }
    return unpack_open(&c->open, fd, f->path);
}

enum status corpus_input_rewind(struct corpus_input *c)
{
    c->at = 0;
    c->before = 0;
    return open_file(c);
}

enum status corpus_input_read(struct corpus_input *c, char *ret, int64_t most, int64_t *ret_bytes)
{
    if (interrupt_noted()) return fail(ST_INTERRUPTED, "interrupted");
    return unpack_read(c->open, ret, most, ret_bytes);
}

enum status corpus_input_next(struct corpus_input *c, bool *ret)
{
    *ret = c->at + 1 < c->files;
    if (!*ret) return ST_OK;
    c->before += c->file[c->at++].bytes;
    return open_file(c);
}

int64_t corpus_input_done(const struct corpus_input *c)
{
    return c->before + (c->open ? unpack_consumed(c->open) : 0);
}

void corpus_input_close(struct corpus_input *c)
{
    unpack_close(c->open);
    for (int i = 0; i < c->files; i++)
        if (c->file[i].spooled >= 0) close(c->file[i].spooled);
    *c = (struct corpus_input){};
}
