/* capture.h - captures stderr for a test. */
#ifndef SUPPORT_CAPTURE_H
#define SUPPORT_CAPTURE_H

/* Redirects stderr to a file. */
void stderr_capture(void);
/* Restores stderr; returns the captured text, valid until the next call. */
const char *stderr_release(void);

#endif
