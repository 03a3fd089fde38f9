#include "base/str.h"

#include "base/heap.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void reserve(struct str *s, int64_t more)
{
    int64_t need = s->len + more + 1;
    if (need <= s->capacity) return;
    int64_t capacity = s->capacity ? s->capacity : 64;
    while (capacity < need) capacity *= 2;
    s->data = heap_resize(s->data, capacity);
    s->capacity = capacity;
}

void str_printf(struct str *s, const char *format, ...)
{
    va_list args, copy_of_args;
    va_start(args, format);
    va_copy(copy_of_args, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 && errno == ENOMEM) heap_end(0);
    BUG_IF(n < 0, "invalid format %s", format);
    reserve(s, n);
    vsnprintf(s->data + s->len, (size_t)n + 1, format, copy_of_args);
    va_end(copy_of_args);
    s->len += n;
}

void str_append(struct str *s, const char *text)
{
    str_append_bytes(s, text, (int64_t)strlen(text));
}

void str_append_bytes(struct str *s, const void *bytes, int64_t n)
{
    reserve(s, n);
    if (n > 0) memcpy(s->data + s->len, bytes, (size_t)n);
    s->len += n;
    s->data[s->len] = '\0';
}

char *str_reserve(struct str *s, int64_t n)
{
    reserve(s, n);
    return s->data + s->len;
}

const char *str_text(const struct str *s)
{
    return s->data ? s->data : "";
}

void str_release(struct str *s)
{
    free(s->data);
    *s = (struct str){0};
}

const char *str_thousands(char *buffer, int64_t value)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%lld", (long long)value);
    char *out = buffer;
    for (int i = 0; i < n; i++) {
        *out++ = digits[i];
        int left = n - 1 - i;
        if (left > 0 && left % 3 == 0 && digits[i] != '-') *out++ = ',';
    }
    *out = '\0';
    return buffer;
}

const char *str_loss(char *buffer, double loss)
{
    snprintf(buffer, 32, fabs(loss) < 0.01 ? "%.4g" : "%.4f", loss);
    return buffer;
}

const char *str_number(char *buffer, double x, int digits)
{
    double size = fabs(x);
    int before = size > 0 && isfinite(x) ? 1 + (int)floor(log10(size)) : 1;
    int decimals = digits - before;
    if (!isfinite(x) || before > 18 || decimals > 20)
        snprintf(buffer, 32, "%g", x);
    else if (decimals <= 0)
        str_thousands(buffer, llround(x / pow(10, -decimals)) * llround(pow(10, -decimals)));
    else {
        snprintf(buffer, 32, "%.*f", decimals, x);
        char *end = buffer + strlen(buffer);
        while (end[-1] == '0') *--end = '\0';
        if (end[-1] == '.') end[-1] = '\0';
    }
    return buffer;
}

const char *str_bytes(char *buffer, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int unit = 0;
    /* 1023.95 would be printed as 1024.0, so it is already 1.0 of the next unit. */
    while (unit + 1 < COUNT_OF(units) && fabs(bytes) >= (unit ? 1023.95 : 1023.5)) {
        bytes /= 1024;
        unit++;
    }
    snprintf(buffer, 32, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return buffer;
}

const char *str_flops(char *buffer, double flops)
{
    static const char *const units[] = {"FLOP",  "kFLOP", "MFLOP", "GFLOP",
                                        "TFLOP", "PFLOP", "EFLOP"};
    int unit = 0;
    /* 999.95 would be printed as 1000, so it is already 1 of the next unit. */
    for (; unit + 1 < COUNT_OF(units) && fabs(flops) >= 999.95; unit++) flops /= 1000;
    snprintf(buffer, 32, "%.4g %s", flops, units[unit]);
    return buffer;
}

bool str_read_bytes(const char *text, int64_t *ret_bytes)
{
    static const char prefixes[] = "kmgtp";
    char *end;
    double size = strtod(text, &end), unit = 1;
    if (end == text || !(size >= 0)) return false;
    while (*end == ' ') end++;
    const char *prefix = *end ? strchr(prefixes, tolower((unsigned char)*end)) : NULL;
    if (prefix) end++;
    bool binary = prefix && (*end == 'i' || *end == 'I');
    if (binary) end++;
    if ((*end != 'B' && *end != 'b') || end[1]) return false;
    for (const char *p = prefixes; prefix && p <= prefix; p++) unit *= binary ? 1024 : 1000;
    if (!(size * unit < 0x1p62)) return false;
    *ret_bytes = (int64_t)(size * unit);
    return true;
}

bool str_same(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

int str_distance(const char *a, const char *b)
{
    int width = (int)strlen(b);
    /* row i of the distance table, updated in place */
    int *row = HEAP_NEW(int, width + 1);
    for (int j = 0; j <= width; j++) row[j] = j;
    for (int i = 0; a[i]; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < width; j++) {
            int above = row[j + 1];
            int best = diagonal + (a[i] != b[j]);
            if (above + 1 < best) best = above + 1;
            if (row[j] + 1 < best) best = row[j] + 1;
            row[j + 1] = best;
            diagonal = above;
        }
    }
    int distance = row[width];
    free(row);
    return distance;
}
