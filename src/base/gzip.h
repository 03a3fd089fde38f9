/* gzip.h - texts that are kept compressed, where zlib was there when the program was built. */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include "base/str.h"

bool gzip_there(void);
/* A gzip file of `text`, the same bytes for the same text; a BUG where gzip_there is false. */
void gzip_text(const struct str *text, struct str *ret);

#endif
