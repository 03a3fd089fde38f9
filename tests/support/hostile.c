#include "hostile.h"

#include "base/file.h"
#include "cases.h"
#include "workdir.h"

#include <dirent.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct arena hostile_arena;
struct hf hostile_hf;
const char *hostile_folder;
int hostile_tried;

int hostile_set_up(void **)
{
    workdir_open();
    hostile_folder = workdir_path("model");
    hf_init(&hostile_hf);
    alarm(120);
    return 0;
}

int hostile_tear_down(void **)
{
    alarm(0);
    arena_release(&hostile_arena);
    hf_release(&hostile_hf);
    workdir_close();
    return 0;
}

const char *hostile_path(const char *name)
{
    return arena_printf(&hostile_arena, "%s/%s", hostile_folder, name);
}

void hostile_text(const char *name, const char *text)
{
    workdir_write(hostile_path(name), text, (int64_t)strlen(text));
}

char *hostile_repeat(const char *part, int times)
{
    size_t n = strlen(part);
    char *text = arena_alloc(&hostile_arena, (int64_t)n * times + 1);
    for (int i = 0; i < times; i++) memcpy(text + (size_t)i * n, part, n);
    return text;
}

static int open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

static int64_t address_space(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

enum status hostile_open(struct exchange_model *m, int64_t most, struct arena *a)
{
    struct rlimit before, small;
    if (SANITIZED || !address_space()) return exchange_open(m, hostile_folder, a);
    malloc_trim(0);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    small = before;
    small.rlim_cur = (rlim_t)(address_space() + most);
    assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
    enum status st = exchange_open(m, hostile_folder, a);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    return st;
}

void hostile_within(const char *what, int64_t most)
{
    struct exchange_model m;
    struct arena own = {};
    int files = open_files();
    enum status st = hostile_open(&m, most, &own);
    const char *message = fail_message();
    hostile_tried++;
    if (st == ST_OK) fail_msg("%s: accepted", what);
    if (st != ST_FORMAT && st != ST_UNSUPPORTED && !is_of_files(st))
        fail_msg("%s: status %d: %s", what, (int)st, message);
    if (strchr(message, '\n') || strchr(message, '\033') || !*message)
        fail_msg("%s: \"%s\" is no sentence", what, message);
    if (!strstr(message, hostile_folder)) fail_msg("%s: \"%s\" names no file", what, message);
    if (open_files() != files) fail_msg("%s: a file stays open", what);
    arena_release(&own);
}

void hostile_case(const char *what)
{
    hostile_within(what, HOSTILE_BYTES);
}

void hostile_for(const char *what, const char *part)
{
    hostile_case(what);
    if (!strstr(fail_message(), part))
        fail_msg("%s: \"%s\" lacks \"%s\"", what, fail_message(), part);
}

void hostile_kinds(const char *name)
{
    static const char *const links[] = {"/dev/zero", "loop", "/", "."};
    const char *path = hostile_path(name);
    remove(path);
    assert_int_equal(mkdir(path, 0777), 0);
    hostile_for("a folder", "directory");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0666), 0);
    hostile_for("a FIFO", "is a FIFO");
    remove(path);
    assert_int_equal(symlink("loop", hostile_path("loop")), 0);
    for (int i = 0; i < COUNT_OF(links); i++) {
        assert_int_equal(symlink(links[i], path), 0);
        hostile_case(arena_printf(&hostile_arena, "%s -> %s", name, links[i]));
        remove(path);
    }
    remove(hostile_path("loop"));
    hostile_text(name, "{}");
    workdir_truncate(path, 100 * (int64_t)HOSTILE_MEGABYTE);
    hostile_case("100 MB of zeros");
    workdir_truncate(path, (int64_t)1 << 40);
    hostile_case("1 TB of zeros");
}
