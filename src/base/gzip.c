#include "base/gzip.h"

#ifdef HAVE_ZLIB
#include <zlib.h>

/* A window of 32 KiB, and 16: a header of gzip's around it, without a name and a date. */
enum { WINDOW = 15 + 16, MEMORY = 8, PIECE = 1 << 16 };

bool gzip_there(void)
{
    return true;
}

void gzip_text(const struct str *text, struct str *ret)
{
    static unsigned char piece[PIECE];
    z_stream z = {0};
    int64_t taken = 0;
    int st =
        deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW, MEMORY, Z_DEFAULT_STRATEGY);
    BUG_IF(st != Z_OK, "zlib does not begin: %d", st);
    do {
        if (!z.avail_in && taken < text->len) {
            int64_t n = text->len - taken < PIECE ? text->len - taken : PIECE;
            z.next_in = (Bytef *)text->data + taken;
            z.avail_in = (uInt)n;
            taken += n;
        }
        z.next_out = piece;
        z.avail_out = PIECE;
        st = deflate(&z, taken == text->len ? Z_FINISH : Z_NO_FLUSH);
        BUG_IF(st == Z_STREAM_ERROR, "zlib does not go on");
        str_append_bytes(ret, piece, PIECE - z.avail_out);
    } while (st != Z_STREAM_END);
    deflateEnd(&z);
}

#else

bool gzip_there(void)
{
    return false;
}

void gzip_text(const struct str *text, struct str *ret)
{
    (void)text, (void)ret;
    BUG_IF(true, "built without zlib");
}
#endif
