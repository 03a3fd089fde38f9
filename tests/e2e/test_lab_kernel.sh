#!/bin/sh
# strobe lab kernel: a formula is checked, timed, shown, drawn and kept; a wrong one gets a sentence
# and a caret.
. "$(dirname "$0")/tiny.sh"
cd "$work"
kernel="$STROBE lab kernel --device=cpu --samples=1 --limit=1"
elu='where(x < 0, a * (exp(x) - 1), x)'
$kernel "$elu" --set=a=1.5 --size=1000,5003 --save=k.json --svg=k.svg >out || fail "$(cat out)"
grep -q 'useful GB/s over sizes' out || fail "no bars: $(cat out)"
[ "$(grep -c '^forward + backward  fused' out)" -ge 2 ] || fail "no rows: $(cat out)"
grep -q '<svg' k.svg || fail "no picture"
"$STROBE" report k.json | grep -q 'forward + backward' || fail "no report"
$kernel "$elu" --set=a=1.5 --size=1000 --json |
    python3 -c 'import json, sys
rows = json.load(sys.stdin)["tables"][0]["rows"]
assert [r["variant"] for r in rows] == ["separate", "fused", "copy"] * 2, rows
assert rows[1]["kernels"] == 1 and rows[4]["kernels"] == 2, rows
assert rows[1]["bytes_per_element"] == 8 and rows[1]["error"] < 1e-6, rows' || fail "--json"
$kernel '-x * y' --dtype=bfloat16 --size=2000 --csv | grep -q '^forward,fused,2000,' ||
    fail "-x * y"
$kernel "$elu" --set=a=1.5 --show | grep -q '^// backward: CHAIN' || fail "--show"

# wrong FORMULA SENTENCE COLUMN
wrong() {
    status=0
    $kernel "$1" 2>err || status=$?
    [ $status = 2 ] || fail "$1: status $status"
    printf 'strobe: %s\n    %s\n    %*s^\n' "$2" "$1" "$3" '' | cmp -s - err ||
        fail "$1: $(cat err)"
}
wrong 'exp(x)-+1)' 'an operand is missing after "-"' 7
wrong 'x + b' '"b" is no known name; the names are x, y and z' 4
wrong 'log(x' 'this "(" is never closed' 3
wrong 'x^2' '"^" cannot be used: a power is written pow(x, 2)' 1
wrong 'min(x)' 'min takes 2 arguments; found 1' 5
expect 2 'needs a formula of x, y and z' $kernel
expect 2 'found also y' $kernel x y
expect 2 'a is set twice' $kernel x --set=a=1,a=2
expect 2 'takes constants as a=1.5,b=2; found a=' $kernel x --set=a=
expect 2 'exp is a function' $kernel x --set=exp=1
expect 2 'as in 65536,1048576; found 0' $kernel x --size=0
expect 2 'must be float32 or bfloat16' $kernel x --dtype=float16
expect 1 'may be used; choose a smaller --size' $kernel x --size=17179869184
expect 1 'use --show for the steps' $kernel x --ptx
echo ok
