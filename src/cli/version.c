#include "cli/version.h"

/* The Makefile defines the three macros for this file only. */
const char version_number[] = VERSION;
const char version_commit[] = COMMIT;
const char version_mode[] = MODE;
