#include "cli/list.h"

#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *list_size(const char *at, int n, int64_t *ret)
{
    for (int i = 0; i < n; i++) {
        char *end;
        errno = 0;
        long long x = strtoll(at, &end, 10);
        bool last = i + 1 == n;
        if (*at < '0' || *at > '9' || x < 1 || errno) return NULL;
        if (last ? *end && *end != ',' : *end != 'x') return NULL;
        ret[i] = x;
        at = end + !last;
    }
    return at;
}

int list_numbers(const char *words, int64_t *ret, int most)
{
    for (int n = 0; n < most; words++) {
        words = list_size(words, 1, &ret[n++]);
        if (!words) return 0;
        if (!*words) return n;
    }
    return 0;
}

int list_words(const char *words, const char *const *known, int n, int *ret)
{
    int found = 0;
    for (const char *at = words;; at++) {
        size_t length = strcspn(at, ",");
        int i = 0;
        while (i < n && (strlen(known[i]) != length || strncmp(at, known[i], length))) i++;
        for (int k = 0; k < found; k++)
            if (ret[k] == i) return 0;
        if (i == n) return 0;
        ret[found++] = i;
        at += length;
        if (!*at) return found;
    }
}
