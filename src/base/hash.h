/* hash.h - SHA-256 from libcrypto. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/base.h"

/* Sizes of a digest as text, including the terminating zero. */
enum { HASH_HEX = 65, HASH_BASE64 = 45 };

struct hash;
struct hash *hash_open(void);
void hash_add(struct hash *h, const void *bytes, int64_t n);
/* Writes 64 hexadecimal digits and frees the hash. */
void hash_close(struct hash *h, char ret_hex[HASH_HEX]);
void hash_bytes(const void *bytes, int64_t n, char ret_hex[HASH_HEX]);
void hash_base64(const void *bytes, int64_t n, char ret[HASH_BASE64]);

#endif
