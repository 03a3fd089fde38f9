#include "lab/add.h"

#include <math.h>

static struct add_number number_of(enum number_kind f, double x)
{
    const struct number_format *n = &number_formats[f];
    int exponent = x == 0 ? n->least : ilogb(x);
    if (exponent < n->least) exponent = n->least;
    return (struct add_number){signbit(x), (uint32_t)ldexp(fabs(x), n->fraction - exponent),
                               exponent};
}

/* Shifts to the right. The last bit becomes 1 if any dropped bit is 1 (sticky). */
static uint32_t shift_right(uint32_t x, int places)
{
    if (places == 0) return x;
    if (places > 31) return x != 0;
    return x >> places | ((x & ((1u << places) - 1)) != 0);
}

static void align(struct addition *x)
{
    x->larger = fabs(x->term[1]) > fabs(x->term[0]);
    const struct add_number *large = &x->of[x->larger], *small = &x->of[!x->larger];
    x->shift = large->exponent - small->exponent;
    x->lost = x->shift > 31 ? small->significand : small->significand & ((1u << x->shift) - 1);
    x->aligned = (struct add_number){
        small->negative, shift_right(small->significand << ADD_EXTRA, x->shift), large->exponent};
}

static void add_significands(struct addition *x)
{
    const struct add_number *large = &x->of[x->larger];
    uint32_t kept = large->significand << ADD_EXTRA, other = x->aligned.significand;
    x->sum = *large;
    x->sum.significand = large->negative == x->aligned.negative ? kept + other : kept - other;
    /* Only -0 + -0 is -0. */
    if (x->sum.significand == 0) x->sum.negative = large->negative && x->aligned.negative;
}

static void normalize(struct addition *x)
{
    const struct number_format *n = &number_formats[x->format];
    uint32_t one = 1u << (n->fraction + ADD_EXTRA);
    struct add_number *y = &x->normal;
    *y = x->sum;
    if (y->significand >= 2 * one) {
        y->significand = shift_right(y->significand, 1);
        y->exponent++;
        x->moved = -1;
    }
    while (y->significand && y->significand < one && y->exponent > n->least) {
        y->significand <<= 1;
        y->exponent--;
        x->moved++;
    }
}

static void round_to_even(struct addition *x)
{
    enum { HALF = 1 << (ADD_EXTRA - 1), MASK = (1 << ADD_EXTRA) - 1 };
    const struct number_format *n = &number_formats[x->format];
    uint32_t extra = x->normal.significand & MASK, kept = x->normal.significand >> ADD_EXTRA;
    x->tie = extra == HALF;
    x->up = extra > HALF || (x->tie && kept & 1);
    x->rounded = x->normal;
    x->rounded.significand = kept + x->up;
    if (x->rounded.significand == 2u << n->fraction) {
        x->rounded.significand >>= 1;
        x->rounded.exponent++;
        x->carried = true;
    }
    double size = ldexp(x->rounded.significand, x->rounded.exponent - n->fraction);
    x->overflow = size > n->largest;
    if (x->overflow) size = n->saturates ? n->largest : INFINITY;
    x->result = x->rounded.negative ? -size : size;
}

void add_numbers(enum number_kind f, double a, double b, struct addition *ret)
{
    *ret = (struct addition){.format = f, .given = {a, b}};
    double x = ret->term[0] = number_round(f, a), y = ret->term[1] = number_round(f, b);
    ret->exact = x + y;
    double part = ret->exact - x; /* Knuth's exact sum of two doubles */
    ret->rest = (x - (ret->exact - part)) + (y - part);
    ret->special = !isfinite(x) || !isfinite(y);
    if (ret->special) {
        ret->result = number_round(f, ret->exact);
        return;
    }
    for (int i = 0; i < 2; i++) ret->of[i] = number_of(f, ret->term[i]);
    align(ret);
    add_significands(ret);
    normalize(ret);
    round_to_even(ret);
}
