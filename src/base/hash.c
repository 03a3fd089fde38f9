#include "base/hash.h"

#include "base/heap.h"

#include <openssl/evp.h>
#include <stdio.h>

enum { DIGEST = 32 }; /* bytes */

struct hash *hash_open(void)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    /* Every libcrypto has SHA-256, so only memory can be missing here. Some versions allocate
     * before main, and heap_guard_libraries then has no effect. */
    if (!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) heap_end(0);
    return (struct hash *)context;
}

void hash_add(struct hash *h, const void *bytes, int64_t n)
{
    int ok = EVP_DigestUpdate((EVP_MD_CTX *)h, bytes, (size_t)n);
    BUG_IF(ok != 1, "SHA-256 of %lld bytes failed", (long long)n);
}

static void end(struct hash *h, unsigned char digest[EVP_MAX_MD_SIZE])
{
    unsigned int n = 0;
    int ok = EVP_DigestFinal_ex((EVP_MD_CTX *)h, digest, &n);
    BUG_IF(ok != 1 || n != DIGEST, "SHA-256 digest of %u bytes", n);
    EVP_MD_CTX_free((EVP_MD_CTX *)h);
}

void hash_close(struct hash *h, char ret_hex[HASH_HEX])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    end(h, digest);
    for (int i = 0; i < DIGEST; i++) snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
}

void hash_bytes(const void *bytes, int64_t n, char ret_hex[HASH_HEX])
{
    struct hash *h = hash_open();
    hash_add(h, bytes, n);
    hash_close(h, ret_hex);
}

void hash_base64(const void *bytes, int64_t n, char ret[HASH_BASE64])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    struct hash *h = hash_open();
    hash_add(h, bytes, n);
    end(h, digest);
    EVP_EncodeBlock((unsigned char *)ret, digest, DIGEST);
}
