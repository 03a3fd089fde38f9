/* zip.h - reads and writes zip files with uncompressed entries, as torch.save writes them,
 * including zip64 (files and entries of more than 4 GiB).
 *
 * Opening a file checks everything except the checksums of the entries; nothing is extracted.
 * ST_UNSUPPORTED: entries are compressed or encrypted, the archive has several parts, or it exceeds
 * a limit. ST_FORMAT: the file is not a zip file, or is truncated or damaged: entries overlap,
 * reach beyond the file or have equal names, absolute names or names with "..", or a local header
 * disagrees with the directory. */
#ifndef EXCHANGE_ZIP_H
#define EXCHANGE_ZIP_H

#include "base/file.h"

enum { ZIP_ENTRIES_MOST = 1 << 17, ZIP_DIRECTORY_MOST = 1 << 25 /* bytes */, ZIP_ALIGNMENT = 64 };

struct zip_entry {
    const char *name;
    int64_t from, bytes; /* offset and size of the data in the file */
    uint32_t crc;        /* expected checksum of the data */
    /* private to zip.c */
    int64_t header;
    int flags;
};

/* An open file; everything except the descriptor lives in the arena. */
struct zip_file {
    const char *path;
    int fd;
    int64_t bytes;
    struct zip_entry *entry; /* sorted by name */
    int count;
};

enum status zip_open(struct zip_file *z, const char *path, struct arena *a);
/* Closes the file; has no effect on a zeroed struct. */
void zip_close(struct zip_file *z);
/* Finds an entry by name; NULL: there is none. */
const struct zip_entry *zip_find(const struct zip_file *z, const char *name);
/* Reads an entry's e->bytes bytes of data. ST_FORMAT: the checksum is wrong, or the file was
 * truncated after it was opened. ST_IO. */
enum status zip_read(const struct zip_file *z, const struct zip_entry *e, void *ret);
/* Reads an entry's data only to check its checksum. Errors are as for zip_read. */
enum status zip_check(const struct zip_file *z, const struct zip_entry *e);

/* Writes a file atomically (base/file.h). The data of each entry begins at a multiple of
 * ZIP_ALIGNMENT. zip_writer_commit reports the first write error. */
struct zip_writer {
    struct file_writer file;
    int64_t narrow; /* sizes and offsets >= narrow are written as zip64; tests lower it */
    /* private to zip_write.c */
    struct arena *arena;
    struct zip_entry *entry;
    int count, capacity;
    int64_t at;
};

enum status zip_writer_open(struct zip_writer *w, const char *path, struct arena *a);
/* Writes an entry immediately. Two entries with the same name are a BUG. */
void zip_writer_add(struct zip_writer *w, const char *name, const void *data, int64_t bytes);
/* Writes the directory, syncs the file and gives it its name; on failure removes the file. */
enum status zip_writer_commit(struct zip_writer *w);
void zip_writer_discard(struct zip_writer *w);

#endif
