#!/bin/sh
# `strobe lab formats`, `add` and `products`: output, pictures, exit codes and messages.
. "$(dirname "$0")/tiny.sh"
cd "$work"

# --- formats
expect 0 '0.100000001490116119384765625' "$STROBE" lab formats 0.1
expect 0 'fp16: 1e6 is beyond the largest number, 65504: overflow' "$STROBE" lab formats 1e6
expect 0 'cvt.rn.satfinite.e4m3x2.f32 saturates' "$STROBE" lab formats -- -1000
expect 0 '-448' "$STROBE" lab formats -1000
# a tie that rounds to the largest number is no saturation; one beside it is
expect 0 'e4m3: 464 is beyond the largest number, 448, but rounds to it' "$STROBE" lab formats 464
expect 0 'e4m3x2.f32 saturates' "$STROBE" lab formats 464.5
expect 0 'e5m2x2.f32 saturates' "$STROBE" lab formats 61440
expect 0 '-0.9996' "$STROBE" lab formats 1e6
expect 2 'found an empty word' "$STROBE" lab add 1 2 --dtype=
expect 2 'heads x tokens, each at least 1 and with a product of at most 2^48, as in 1x4x512,' \
    "$STROBE" lab attention --size=0x1x2
expect 2 'rows x columns, each at least 1 and with a product of at most 2^36, as in 8192x768,' \
    "$STROBE" lab layernorm --size=4096
expect 0 'e5m2: underflow: 1e-7 becomes 0, because' "$STROBE" lab formats 1e-7
expect 0 'fp16: subnormal: 2 of the 11 bits' "$STROBE" lab formats 1e-7
expect 0 'nan' "$STROBE" lab formats nan
expect 0 '"smallest_subnormal"' "$STROBE" lab formats --json
"$STROBE" lab formats -inf --svg=bits.svg >out 2>&1 || fail "no picture: $(cat out)"
grep -q '^<title>-inf in six number formats</title>' bits.svg || fail "no title in bits.svg"
[ "$(grep -c 'class="chart-head"' bits.svg)" -eq 6 ] || fail "not six formats in bits.svg"
echo mine >other.svg
expect 2 'other.svg' "$STROBE" lab formats 1 --svg=other.svg
[ "$(cat other.svg)" = mine ] || fail "a file of the user was replaced"
expect 2 'one is not a number; write it as 0.1' "$STROBE" lab formats one
expect 2 '1e999 is beyond the range of double; write inf' "$STROBE" lab formats 1e999
expect 2 'lab formats takes one number; found one more: -2' "$STROBE" lab formats 1 -2
expect 2 'options of this command' "$STROBE" lab formats --nothing

# --- add
expect 0 'b is lost: near 1000 neighboring numbers are 0.5 apart' \
    "$STROBE" lab add 1000 0.01 --dtype=float16
expect 0 'so the sum moves 11 places to the left' "$STROBE" lab add 1 -0.99951171875
expect 0 'the result is infinite' "$STROBE" lab add 65504 100
expect 0 'saturates, so that is the result' "$STROBE" lab add 400 300 --dtype=e4m3
expect 0 'infinity minus infinity has no value' "$STROBE" lab add inf -inf
"$STROBE" lab add -1 0.25 --dtype=float32 --csv >sum.csv || fail "no CSV"
grep -q '^result,1 01111110 10000000000000000000000,-0.75$' sum.csv || fail "$(cat sum.csv)"
expect 2 'lab add takes two numbers, as in strobe lab add 1000 0.01; found 1' "$STROBE" lab add 1
expect 2 '--dtype must be float16, bfloat16, tf32, float32, e4m3 or e5m2; found fp4' \
    "$STROBE" lab add 1 2 --dtype=fp4

# --- products
expect 0 'e5m2 x e4m3' "$STROBE" lab products --device=cpu --size=33x17x40 --limit=1
expect 2 '--size takes MxNxK, each 1 to 32768' "$STROBE" lab products --device=cpu --size=512
expect 2 '--size takes MxNxK' "$STROBE" lab products --device=cpu --size=0x4x4
expect 2 'lab products takes only options; found 512' "$STROBE" lab products 512
