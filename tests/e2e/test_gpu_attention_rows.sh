#!/bin/sh
# Attention's rows for compute capability 9.0 at every edge (tests/backend/test_attention_gpu.c) on
# an emulated GPU, at small sizes: with fewer SMs than the largest case has items, and more than the
# smallest has; with one SM, so that a block processes many items; and with late copies made early,
# in another order.
# test: slow; the GPU is emulated
set -u
. "$(dirname "$0")/gpu.sh"
test=$STROBE_BUILD/tests/backend/test_attention_gpu
log=$(mktemp)
trap 'rm -f "$log"' EXIT

for how in EMU_SMS=7 EMU_SMS=1 'EMU_SMS=7 EMU_EARLY=1 EMU_REVERSE=1'; do
    # shellcheck disable=SC2086
    env $how "$test" --small tails heads groups extremes dropout masks leak determinism large \
        races >"$log" 2>&1 &&
        grep -q '^10 tests, 0 failures$' "$log" || {
        echo "FAIL: with $how"
        cat "$log"
        exit 1
    }
done
grep '^  ' "$log"
