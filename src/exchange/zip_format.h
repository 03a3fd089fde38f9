/* zip_format.h - the records of a zip file (PKWARE's APPNOTE.TXT, chapter 4.3); included by zip.c
 * and zip_write.c only. */
#ifndef EXCHANGE_ZIP_FORMAT_H
#define EXCHANGE_ZIP_FORMAT_H

#include <stdint.h>

/* Signatures. */
#define ZIP_LOCAL     0x04034b50u /* before the data of an entry */
#define ZIP_DIRECTORY 0x02014b50u /* an entry of the directory */
#define ZIP_END       0x06054b50u
#define ZIP_END64     0x06064b50u
#define ZIP_LOCATOR64 0x07064b50u

/* Sizes of these records in bytes, without names and extra fields. */
enum {
    ZIP_LOCAL_BYTES = 30,
    ZIP_DIRECTORY_BYTES = 46,
    ZIP_END_BYTES = 22,
    ZIP_END64_BYTES = 56,
    ZIP_LOCATOR64_BYTES = 20,
};

/* These values mean that the number is in the extra field ZIP_EXTRA64 or in the zip64 records. */
#define ZIP_WIDE16 0xffffu
#define ZIP_WIDE32 0xffffffffu

enum {
    ZIP_EXTRA64 = 1,
    /* Flags of an entry: its data is encrypted; its sizes and checksum follow its data; its name is
     * UTF-8. */
    ZIP_ENCRYPTED = 1 | 1 << 6 | 1 << 13,
    ZIP_SIZES_FOLLOW = 1 << 3,
    ZIP_UTF8 = 1 << 11,
};

#endif
