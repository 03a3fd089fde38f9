/* hash.h - SHA-256, by libcrypto. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/base.h"

enum { HASH_HEX = 65 }; /* bytes of a digest as text, with the end */

struct hash;
struct hash *hash_open(void);
void hash_add(struct hash *h, const void *bytes, int64_t n);
/* Writes 64 hexadecimal digits and closes. */
void hash_close(struct hash *h, char ret_hex[HASH_HEX]);
void hash_bytes(const void *bytes, int64_t n, char ret_hex[HASH_HEX]);

#endif
