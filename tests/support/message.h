/* message.h - checks of the last failure's message; for tests with cmocka. */
#ifndef SUPPORT_MESSAGE_H
#define SUPPORT_MESSAGE_H

#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static inline void assert_message_has(const char *part)
{
    if (!strstr(fail_message(), part)) fail_msg("\"%s\" lacks \"%s\"", fail_message(), part);
}

#endif
