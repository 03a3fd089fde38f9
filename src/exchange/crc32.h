/* crc32.h - the checksum of zip files (CRC-32 with the polynomial 0xedb88320). */
#ifndef EXCHANGE_CRC32_H
#define EXCHANGE_CRC32_H

#include "base/base.h"

/* Continues a checksum: `crc` is the checksum of the bytes before `data`, or 0 if there are
 * none. */
uint32_t crc32_add(uint32_t crc, const void *data, int64_t bytes);

#endif
