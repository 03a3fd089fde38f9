#include "cli/version.h"

/* The three macros come from the Makefile, for this file alone. */
const char version_number[] = VERSION;
const char version_commit[] = COMMIT;
const char version_mode[] = MODE;
