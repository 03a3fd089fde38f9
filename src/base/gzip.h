/* gzip.h - gzip compression of text, available if the program was built with zlib. */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include "base/str.h"

bool gzip_there(void);
/* Compresses `text`; the output depends on the text alone. Aborts if gzip_there() is false. */
void gzip_text(const struct str *text, struct str *ret);

#endif
