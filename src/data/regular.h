/* regular.h - opens regular files only: a FIFO would block, a device may have no end. */
#ifndef DATA_REGULAR_H
#define DATA_REGULAR_H

#include "base/base.h"

/* Opens a file for reading, following links. Anything but a regular file is ST_IO. */
enum status regular_open(const char *path, int *ret_fd, int64_t *ret_bytes);
/* The same check before a file is read by its path. `bytes_most` limits the size: ST_FORMAT. */
enum status regular_check(const char *path, int64_t bytes_most);

#endif
