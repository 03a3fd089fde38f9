#include "disk.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAMES = 64, MOST_OBJECTS = 20000 };

struct entry {
    char name[96];
    int object;
};
struct disk_object {
    bool is_dir;
    uint64_t inode;
    char *data;
    int64_t bytes;
    struct entry *entry;
    int entries;
};

/* ---- reading */

static int add_object(struct disk *d, uint64_t inode, bool is_dir)
{
    if (d->objects == MOST_OBJECTS) die("the record has too many files");
    d->object[d->objects] = (struct disk_object){.is_dir = is_dir, .inode = inode};
    if (is_dir && !(d->object[d->objects].entry = calloc(NAMES, sizeof(struct entry))))
        die("out of memory");
    return d->objects++;
}

static void put(struct disk_object *dir, const char *name, int object)
{
    int i = 0;
    while (i < dir->entries && strcmp(dir->entry[i].name, name)) i++;
    if (i == NAMES) die("a folder has too many files");
    snprintf(dir->entry[i].name, sizeof dir->entry[i].name, "%s", name);
    dir->entry[i].object = object;
    if (i == dir->entries) dir->entries++;
}

static int take(struct disk_object *dir, const char *name)
{
    for (int i = 0; i < dir->entries; i++)
        if (!strcmp(dir->entry[i].name, name)) {
            int object = dir->entry[i].object;
            dir->entry[i] = dir->entry[--dir->entries];
            return object;
        }
    return -1;
}

static int read_dir(struct disk *d, const char *path, uint64_t inode)
{
    int self = add_object(d, inode, true);
    DIR *dir = opendir(path);
    if (!dir) die("%s cannot be read", path);
    for (struct dirent *e; (e = readdir(dir));) {
        char below[PATH_BYTES];
        struct stat info;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (stat(path_in(below, "%s/%s", path, e->d_name), &info)) die("%s: no file", below);
        int child;
        if (S_ISDIR(info.st_mode)) {
            child = read_dir(d, below, info.st_ino);
        } else {
            size_t n;
            child = add_object(d, info.st_ino, false);
            d->object[child].data = read_whole(below, &n);
            d->object[child].bytes = (int64_t)n;
        }
        put(&d->object[self], e->d_name, child);
    }
    closedir(dir);
    return self;
}

void disk_read(struct disk *d, const char *folder)
{
    struct stat info;
    *d = (struct disk){.object = calloc(MOST_OBJECTS, sizeof *d->object)};
    if (!d->object || stat(folder, &info)) die("%s: no folder", folder);
    read_dir(d, folder, info.st_ino);
}

/* The newest object of an inode, whose number may have been used before. */
static int find(const struct disk *d, uint64_t inode)
{
    for (int i = d->objects - 1; i >= 0; i--)
        if (d->object[i].inode == inode) return i;
    return -1;
}

static void resolve(struct disk *d, struct disk_change *c)
{
    enum faults_change kind = c->r.change;
    c->dir = c->r.dir ? find(d, c->r.dir) : -1;
    c->dir2 = c->r.dir2 ? find(d, c->r.dir2) : -1;
    if (kind == CHANGE_CREATE || kind == CHANGE_MKDIR)
        c->file = add_object(d, c->r.ino, kind == CHANGE_MKDIR);
    else
        c->file = c->r.ino ? find(d, c->r.ino) : -1;
}

void disk_add_record(struct disk *d, const char *path)
{
    size_t bytes, at = 0;
    d->record = read_whole(path, &bytes);
    if (!d->record) die("there is no record %s", path);
    for (int capacity = 0; at + sizeof(struct faults_change_record) <= bytes;) {
        if (d->changes == capacity) {
            capacity = 2 * capacity + 256;
            d->change = realloc(d->change, (size_t)capacity * sizeof *d->change);
            if (!d->change) die("out of memory");
        }
        struct disk_change *c = &d->change[d->changes++];
        *c = (struct disk_change){0};
        memcpy(&c->r, d->record + at, sizeof c->r);
        at += sizeof c->r;
        c->data = d->record + at;
        if (c->r.change == CHANGE_WRITE) at += (size_t)c->r.bytes;
        if (at > bytes) die("the record ends in the middle of a write");
        resolve(d, c);
    }
}

/* ---- what is kept */

static bool is_of_data(const struct disk_change *c)
{
    return c->r.change == CHANGE_WRITE || c->r.change == CHANGE_TRUNCATE;
}

static bool is_synced(const struct disk *d, int i, int prefix)
{
    const struct disk_change *c = &d->change[i];
    for (int j = i + 1; j < prefix; j++) {
        const struct disk_change *s = &d->change[j];
        if (s->r.change != CHANGE_SYNC || s->file < 0) continue;
        if (is_of_data(c) ? s->file == c->file : s->file == c->dir || s->file == c->dir2)
            return true;
    }
    return false;
}

static void resize(struct disk_object *f, int64_t bytes)
{
    char *data = realloc(f->data, (size_t)bytes + 1);
    if (!data) die("out of memory");
    if (bytes > f->bytes) memset(data + f->bytes, 0, (size_t)(bytes - f->bytes));
    f->data = data;
    f->bytes = bytes;
}

/* `kept` bytes of a write arrive; with `grown`, the file has its length all the same. */
static void write_data(struct disk_object *f, const struct disk_change *c, int64_t kept, bool grown)
{
    int64_t end = c->r.at + (grown ? c->r.bytes : kept);
    if (end > f->bytes) resize(f, end);
    memcpy(f->data + c->r.at, c->data, (size_t)kept);
}

static void exchange(struct disk_object *object, const struct disk_change *c)
{
    int a = take(&object[c->dir], c->r.name), b = take(&object[c->dir2], c->r.name2);
    if (b >= 0) put(&object[c->dir], c->r.name, b);
    if (a >= 0) put(&object[c->dir2], c->r.name2, a);
}

static void apply(struct disk_object *object, const struct disk_change *c)
{
    switch ((enum faults_change)c->r.change) {
    case CHANGE_CREATE:
    case CHANGE_MKDIR:
    case CHANGE_LINK:
        if (c->dir >= 0 && c->file >= 0) put(&object[c->dir], c->r.name, c->file);
        break;
    case CHANGE_WRITE:
        if (c->file >= 0) write_data(&object[c->file], c, c->r.bytes, false);
        break;
    case CHANGE_TRUNCATE:
        if (c->file >= 0) resize(&object[c->file], c->r.at);
        break;
    case CHANGE_RENAME:
        if (c->dir < 0 || c->dir2 < 0 || c->file < 0) break;
        take(&object[c->dir], c->r.name);
        put(&object[c->dir2], c->r.name2, c->file);
        break;
    case CHANGE_EXCHANGE:
        if (c->dir >= 0 && c->dir2 >= 0) exchange(object, c);
        break;
    case CHANGE_UNLINK:
        if (c->dir >= 0) take(&object[c->dir], c->r.name);
        break;
    case CHANGE_SYNC:
        break;
    }
}

static void apply_unsynced(struct disk_object *object, const struct disk_change *c, int i,
                           enum survival s, uint64_t seed, int journal)
{
    uint64_t x = random_of(seed, (uint64_t)i);
    if (s == KEEP_NONE) return;
    if (s == KEEP_ALL || !is_of_data(c)) {
        if (s == KEEP_ALL || (s == KEEP_JOURNAL ? i < journal : x & 1)) apply(object, c);
        return;
    }
    if (x % 3 == 0) return;
    if (x % 3 == 1 || c->r.change != CHANGE_WRITE || c->file < 0)
        apply(object, c);
    else /* torn */
        write_data(&object[c->file], c, (int64_t)((x >> 8) % (uint64_t)c->r.bytes), x >> 60 & 1);
}

/* ---- writing */

static void write_dir(const struct disk_object *object, int self, const char *path, int depth)
{
    make_dir(path);
    if (depth > 16) die("folders form a circle");
    for (int i = 0; i < object[self].entries; i++) {
        const struct entry *e = &object[self].entry[i];
        const struct disk_object *o = &object[e->object];
        char below[PATH_BYTES];
        path_in(below, "%s/%s", path, e->name);
        if (o->is_dir)
            write_dir(object, e->object, below, depth + 1);
        else
            write_whole(below, o->data ? o->data : "", (size_t)o->bytes);
    }
}

static struct disk_object *copy_objects(const struct disk *d)
{
    struct disk_object *copy = calloc((size_t)d->objects, sizeof *copy);
    if (!copy) die("out of memory");
    for (int i = 0; i < d->objects; i++) {
        copy[i] = d->object[i];
        copy[i].data = NULL;
        copy[i].bytes = 0;
        if (d->object[i].data) {
            resize(&copy[i], d->object[i].bytes);
            memcpy(copy[i].data, d->object[i].data, (size_t)d->object[i].bytes);
        }
        if (!d->object[i].is_dir) continue;
        copy[i].entry = malloc(NAMES * sizeof(struct entry));
        if (!copy[i].entry) die("out of memory");
        memcpy(copy[i].entry, d->object[i].entry, NAMES * sizeof(struct entry));
    }
    return copy;
}

void disk_write(const struct disk *d, int prefix, enum survival s, uint64_t seed,
                const char *folder)
{
    struct disk_object *object = copy_objects(d);
    int journal = (int)(random_of(seed, 1u << 30) % (uint64_t)(prefix + 1));
    for (int i = 0; i < prefix; i++) {
        if (is_synced(d, i, prefix))
            apply(object, &d->change[i]);
        else
            apply_unsynced(object, &d->change[i], i, s, seed, journal);
    }
    remove_tree(folder);
    write_dir(object, 0, folder, 0);
    for (int i = 0; i < d->objects; i++) {
        free(object[i].data);
        free(object[i].entry);
    }
    free(object);
}
