/* zip.h - zip files whose entries are stored without compression, as torch.save writes them; also
 * zip64, that is files and entries of more than 4 GiB.
 *
 * A file is checked completely when it is opened, but for the checksums of the entries, and nothing
 * is extracted. ST_UNSUPPORTED: entries are compressed or encrypted, the archive has several parts,
 * or more than is read. ST_FORMAT: no zip file, cut, or damaged: entries that overlap or reach
 * beyond the file, two of one name, absolute names or names with "..", local headers that disagree
 * with the directory. */
#ifndef EXCHANGE_ZIP_H
#define EXCHANGE_ZIP_H

#include "base/file.h"

enum { ZIP_ENTRIES_MOST = 1 << 17, ZIP_DIRECTORY_MOST = 1 << 25 /* bytes */, ZIP_ALIGNMENT = 64 };

struct zip_entry {
    const char *name;
    int64_t from, bytes; /* of its data, in the file */
    uint32_t crc;        /* that its data should have */
    /* private to zip.c */
    int64_t header;
    int flags;
};

/* An open file; all but the descriptor lives in the arena. */
struct zip_file {
    const char *path;
    int fd;
    int64_t bytes;
    struct zip_entry *entry; /* by name */
    int count;
};

enum status zip_open(struct zip_file *z, const char *path, struct arena *a);
/* No effect on a zeroed struct. */
void zip_close(struct zip_file *z);
/* NULL if there is no entry of that name. */
const struct zip_entry *zip_find(const struct zip_file *z, const char *name);
/* Reads an entry's data, e->bytes of them. ST_FORMAT: its checksum is wrong, or the file was cut
 * meanwhile; ST_IO. */
enum status zip_read(const struct zip_file *z, const struct zip_entry *e, void *ret);
/* Reads an entry's data only to compare its checksum; the same errors. */
enum status zip_check(const struct zip_file *z, const struct zip_entry *e);

/* Writes a file atomically (base/file.h). The data of each entry is at a multiple of ZIP_ALIGNMENT.
 * The first error of writing is kept until the commit. */
struct zip_writer {
    struct file_writer file;
    int64_t narrow; /* sizes and offsets from here on are written as zip64; tests lower it */
    /* private to zip_write.c */
    struct arena *arena;
    struct zip_entry *entry;
    int count, capacity;
    int64_t at;
};

enum status zip_writer_open(struct zip_writer *w, const char *path, struct arena *a);
/* Writes an entry now. A name that is there already is a BUG. */
void zip_writer_add(struct zip_writer *w, const char *name, const void *data, int64_t bytes);
/* Writes the directory, syncs and names the file; on failure nothing is left of it. */
enum status zip_writer_commit(struct zip_writer *w);
void zip_writer_discard(struct zip_writer *w);

#endif
