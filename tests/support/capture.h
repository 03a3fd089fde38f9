/* capture.h - what is said on stderr, for a test to read. */
#ifndef SUPPORT_CAPTURE_H
#define SUPPORT_CAPTURE_H

/* From here on stderr goes to a file. */
void stderr_capture(void);
/* Puts stderr back; what was said lives until the next call. */
const char *stderr_release(void);

#endif
