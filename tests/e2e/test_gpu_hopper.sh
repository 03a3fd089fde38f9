#!/bin/sh
# The functions of hopper.cuh on an emulated GPU, with asynchronous work completing late, at once,
# and in another order; then GELU as matmul epilogues compute it; every tile of plain matmuls; then
# kernels with one fault each, which the emulator must report.
# test: slow; the GPU is emulated
set -u
. "$(dirname "$0")/gpu.sh"
test=$STROBE_BUILD/tests/backend/test_hopper
log=$(mktemp)
trap 'rm -f "$log"' EXIT

for how in NOTHING=1 EMU_EARLY=1 EMU_REVERSE=1; do
    env "$how" "$test" >"$log" 2>&1 && grep -q "swizzle of 32" "$log" || {
        echo "FAIL: with $how"
        cat "$log"
        exit 1
    }
done

"$STROBE_BUILD/tests/backend/test_gelu_points" >"$log" 2>&1 && grep -q "^tanh" "$log" || {
    echo "FAIL: GELU at points"
    cat "$log"
    exit 1
}

for sms in 1 3; do # few SMs: a block computes many tiles
    EMU_SMS=$sms "$STROBE_BUILD/tests/backend/test_matmul_tiles" >"$log" 2>&1 &&
        grep -q "^131 x 264 x 72$" "$log" || {
        echo "FAIL: tiles of matmuls on $sms SMs"
        cat "$log"
        exit 1
    }
done

# fails NUMBER TEXT: fault NUMBER of tests/backend/hopper.cu must be reported with TEXT
fails() {
    if sh -c '"$@"; exit' sh "$test" "$1" >"$log" 2>&1 || ! grep -q "$2" "$log"; then
        echo "FAIL: fault $1 did not report: $2"
        cat "$log"
        exit 1
    fi
}
fails 1 '16 bytes are missing'
fails 2 'without wgmma_fence'
fails 3 'ends while its WGMMA is in flight'
fails 4 'nan'
fails 5 'threads 0 to 0: the barrier at [0-9]*, parity 0; .* 2 of 2 threads'
fails 6 'has not called fence_async'
fails 7 '[0-9a-f] != 0x'
fails 8 'does not call dependents_wait'
