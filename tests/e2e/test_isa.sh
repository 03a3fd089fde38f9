#!/bin/sh
# The same training on every instruction set of this machine: the same curve, and each run records
# its instruction set.
# test: release; test_ops runs the kernels of every instruction set with sanitizers
. "$(dirname "$0")/tiny.sh"
cd "$work"
sets=$("$STROBE" info --json | sed -n '/"available"/,/]/s/^ *"\([a-z0-9_]*\)",*$/\1/p')
[ -n "$sets" ] || fail "info lists no instruction set"

# losses DIR: of the logged steps, one per line
losses() {
    sed -n 's/.*"kind":"step".*"loss":\([0-9.]*\).*/\1/p' "$1/log.jsonl"
}

# follows A B MOST: checks that the losses of two runs differ by at most MOST, step by step
follows() {
    paste "$1.losses" "$2.losses" | awk -v most="$3" '
        { d = $1 - $2; if (d < 0) d = -d }
        d > most { print "step " NR " is off by " d; bad = 1 }
        END { exit bad || NR != 40 }' || fail "the losses of $2 differ from those of $1"
}

first=
for isa in $sets; do
    expect 0 '40 iterations' "$STROBE" train tiny.conf --isa="$isa" --out_dir="runs/$isa" \
        --max_iters=40
    grep -q "\"isa\": \"$isa\"" "runs/$isa/env.json" ||
        fail "env.json of $isa has another instruction set"
    grep -qx "isa = $isa" "runs/$isa/config.conf" || fail "the key is not in config.conf"
    losses "runs/$isa" >"$isa.losses"
    [ "$(wc -l <"$isa.losses")" = 40 ] || fail "$isa has no 40 losses"
    [ -n "$first" ] || first=$isa
    follows "$first" "$isa" 2e-4
    "$STROBE" train tiny.conf --isa="$isa" --dtype=bfloat16 --flash=false --max_iters=40 \
        --out_dir="runs/$isa.bf16" >/dev/null
    losses "runs/$isa.bf16" >"$isa.bf16.losses"
    follows "$isa" "$isa.bf16" 5e-2
done

# The limit applies to plans as well.
"$STROBE" plan tiny.conf --isa=plain | grep -qE 'onednn|avx|sse' &&
    fail "a plan in plain C has other kernels"
grep -q '"isa_library": null' runs/plain/env.json || fail "plain C ran with a library"
expect 2 'isa must be one of: auto, amx' "$STROBE" train tiny.conf --isa=avx --out_dir=runs/none
expect 0 'val loss' "$STROBE" eval "runs/$first" --isa=plain
echo ok
