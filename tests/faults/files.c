/* Folders and files of trials. */
#include "driver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *path_in(char path[PATH_BYTES], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (vsnprintf(path, PATH_BYTES, format, args) >= PATH_BYTES) die("a path is too long");
    va_end(args);
    return path;
}

bool exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

void make_dir(const char *path)
{
    if (mkdir(path, 0777) && errno != EEXIST) die("%s: %s", path, strerror(errno));
}

static int remove_entry(const char *path, const struct stat *, int, struct FTW *)
{
    return remove(path);
}

void remove_tree(const char *path)
{
    if (exists(path) && nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS))
        die("%s: %s", path, strerror(errno));
}

char *read_whole(const char *path, size_t *ret_bytes)
{
    FILE *f = fopen(path, "rbe");
    struct stat info;
    if (!f) return NULL;
    if (fstat(fileno(f), &info) || S_ISDIR(info.st_mode)) {
        fclose(f);
        return NULL;
    }
    char *data = malloc((size_t)info.st_size + 1);
    if (!data) die("out of memory");
    size_t n = fread(data, 1, (size_t)info.st_size, f);
    fclose(f);
    data[n] = '\0';
    if (ret_bytes) *ret_bytes = n;
    return data;
}

void write_whole(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wbe");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f)) die("%s: %s", path, strerror(errno));
}

bool same_file(const char *a, const char *b)
{
    size_t n, m;
    char *x = read_whole(a, &n), *y = read_whole(b, &m);
    bool same = x && y && n == m && memcmp(x, y, n) == 0;
    free(x);
    free(y);
    return same;
}

/* fn(path, is a folder) for each entry; children come after their folder. */
static void walk(const char *path, void (*fn)(void *, const char *, bool), void *to)
{
    DIR *dir = opendir(path);
    if (!dir) die("%s: %s", path, strerror(errno));
    for (struct dirent *e; (e = readdir(dir));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        char below[PATH_BYTES];
        struct stat info;
        path_in(below, "%s/%s", path, e->d_name);
        if (lstat(below, &info)) continue;
        fn(to, below, S_ISDIR(info.st_mode));
        if (S_ISDIR(info.st_mode)) walk(below, fn, to);
    }
    closedir(dir);
}

struct copy {
    const char *to;
    size_t skip;
};

static void copy_entry(void *to, const char *path, bool is_dir)
{
    const struct copy *c = to;
    char target[PATH_BYTES];
    path_in(target, "%s%s", c->to, path + c->skip);
    if (is_dir) {
        make_dir(target);
        return;
    }
    size_t n;
    char *data = read_whole(path, &n);
    if (!data) die("%s: %s", path, strerror(errno));
    write_whole(target, data, n);
    free(data);
}

void copy_tree(const char *from, const char *to)
{
    remove_tree(to);
    make_dir(to);
    walk(from, copy_entry, &(struct copy){to, strlen(from)});
}

struct list {
    char **line;
    int n, capacity;
    size_t skip;
    bool digests;
};

static void list_entry(void *to, const char *path, bool is_dir)
{
    struct list *l = to;
    uint64_t digest = 14695981039346656037u;
    if (l->digests && !is_dir) {
        size_t n = 0;
        char *data = read_whole(path, &n);
        for (size_t i = 0; i < n; i++) digest = (digest ^ (uint8_t)data[i]) * 1099511628211u;
        free(data);
    }
    char *line;
    int bytes = l->digests && !is_dir
                    ? asprintf(&line, "%s %016llx", path + l->skip, (unsigned long long)digest)
                    : asprintf(&line, "%s%s", path + l->skip, is_dir ? "/" : "");
    if (bytes < 0) die("out of memory");
    if (l->n == l->capacity) {
        l->capacity = 2 * l->capacity + 16;
        if (!(l->line = realloc(l->line, (size_t)l->capacity * sizeof *l->line)))
            die("out of memory");
    }
    l->line[l->n++] = line;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *list_tree(const char *path, bool digests)
{
    struct list l = {.skip = strlen(path) + 1, .digests = digests};
    walk(path, list_entry, &l);
    if (l.n) qsort(l.line, (size_t)l.n, sizeof *l.line, by_text);
    char *text;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    for (int i = 0; i < l.n; i++) {
        fprintf(f, "%s\n", l.line[i]);
        free(l.line[i]);
    }
    fclose(f);
    free(l.line);
    return text;
}

static size_t line_bytes(const char *s)
{
    return *s ? strcspn(s, "\n") + 1 : 0;
}

char *list_difference(const char *a, const char *b)
{
    char *text;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    while (*a || *b) {
        size_t n = line_bytes(a), m = line_bytes(b), least = n < m ? n : m;
        int order = !n ? 1 : !m ? -1 : memcmp(a, b, least);
        if (order == 0 && n != m) order = n < m ? -1 : 1;
        if (order < 0) fprintf(f, " -%.*s", (int)n - 1, a);
        if (order > 0) fprintf(f, " +%.*s", (int)m - 1, b);
        if (order <= 0) a += n;
        if (order >= 0) b += m;
    }
    fclose(f);
    return text;
}
