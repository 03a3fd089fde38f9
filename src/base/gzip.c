#include "base/gzip.h"

#ifdef HAVE_ZLIB
#include <zlib.h>

/* 15: a window of 32 KiB; 16: a gzip header. */
enum { WINDOW = 15 + 16, MEMORY = 8, PIECE = 1 << 16 };

bool gzip_there(void)
{
    return true;
}

void gzip_text(const struct str *text, struct str *ret)
{
    static unsigned char piece[PIECE];
    static char comment[] = "strobe"; /* base/own.h recognizes the file by this comment */
    z_stream z = {0};
    int64_t consumed = 0;
    int st =
        deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW, MEMORY, Z_DEFAULT_STRATEGY);
    BUG_IF(st != Z_OK, "deflateInit2 returned %d", st);
    deflateSetHeader(&z, &(gz_header){.os = 3, .comment = (Bytef *)comment});
    do {
        if (!z.avail_in && consumed < text->len) {
            int64_t n = text->len - consumed < PIECE ? text->len - consumed : PIECE;
            z.next_in = (Bytef *)text->data + consumed;
            z.avail_in = (uInt)n;
            consumed += n;
        }
        z.next_out = piece;
        z.avail_out = PIECE;
        st = deflate(&z, consumed == text->len ? Z_FINISH : Z_NO_FLUSH);
        BUG_IF(st == Z_STREAM_ERROR, "deflate returned Z_STREAM_ERROR");
        str_append_bytes(ret, piece, PIECE - z.avail_out);
    } while (st != Z_STREAM_END);
    deflateEnd(&z);
}

#else

bool gzip_there(void)
{
    return false;
}

void gzip_text(const struct str *, struct str *)
{
    BUG_IF(true, "built without zlib");
}
#endif
