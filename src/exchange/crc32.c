/* Processes eight bytes at a time; table[k][b] is the checksum of the byte b followed by k zero
 * bytes. */
#include "exchange/crc32.h"

#include <pthread.h>
#include <string.h>

static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        table[0][b] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++)
            table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 255];
}

uint32_t crc32_add(uint32_t crc, const void *data, int64_t bytes)
{
    const uint8_t *at = data;
    pthread_once(&once, fill);
    crc = ~crc;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint32_t low, high; /* the machine must be little-endian (safetensors.c checks this) */
        memcpy(&low, at, 4);
        memcpy(&high, at + 4, 4);
        low ^= crc;
        crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^
              table[4][low >> 24] ^ table[3][high & 255] ^ table[2][high >> 8 & 255] ^
              table[1][high >> 16 & 255] ^ table[0][high >> 24];
    }
    for (; bytes; bytes--, at++) crc = crc >> 8 ^ table[0][(crc ^ *at) & 255];
    return ~crc;
}
