#!/bin/sh
# The attention block with scores q k^T and without a mask, on an emulated GPU: its profile, and the
# tables of the suite with API calls and with what the host waits for.
# test: slow; the GPU is emulated
. "$(dirname "$0")/gpu.sh"
set -eu
STROBE=${STROBE:-$PWD/strobe}
block=$PWD/configs/attention_block.conf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
emulated_machine
small='--device=cuda --dtype=float32 --batch_size=1 --n_embd=64'
small="$small --attention_scale=none --attention_mask=none"

fail() {
    echo "FAIL: $*: $(cat out err)" >&2
    exit 1
}

# has WORDS...: a line of the output begins with these words, however far apart
has() {
    grep -qE "^$(echo "$*" | sed 's/ /  */g')( |\$)" out || fail "no line $*"
}

# --- the profile: softmax of scores that no kernel scales
# shellcheck disable=SC2086
"$STROBE" profile "$block" $small --block_size=20 --flash=false --steps=2 --out_dir=slow \
    >out 2>err || fail "no profile"
grep -q 'SOFTMAX f32 (1,1,20,20)' out || fail "no softmax"
! grep -qE 'SCORE_SOFTMAX|SCALE f32 \(1,1,20,20\)' out || fail "scores are scaled"

# --- the suite
# shellcheck disable=SC2086
"$STROBE" bench --suite=attention-block $small --block_size=20 --steps=3 >out 2>err ||
    fail "no tables"
if [ ! -e "$emulator/libcupti.so.13" ]; then
    has slow 20 main waits for the device
    exit 0
fi
for side in slow flash; do
    for call in cuMemAlloc cuMemAllocHost cuModuleLoadData cuStreamSynchronize; do
        has $side 20 API call $call before, in all main
    done
    has $side 20 API call cuMemcpyHtoDAsync launch the step main 1
    has $side 20 API call cuLaunchKernel launch the step main
    has $side 20 API call cuEventSynchronize wait main 1
    has $side 20 copy or fill copy host to device
    has $side 20 main waits for the device in cuEventSynchronize
    has $side 20 main works
done
# A step allocates nothing and loads nothing; the library's launches contain those of the driver.
! grep -E '^(slow|flash) .*(cuMemAlloc|cuModule)' out | grep -qv 'before, in all' ||
    fail "a step allocates memory"
has slow 20 API call cudaLaunchKernelExC launch the step main 8
has flash 20 API call cudaLaunchKernelExC launch the step main 2

# --- steps timed by events: there is no record of their calls
# shellcheck disable=SC2086
EMU_CUPTI_REFUSE=35 "$STROBE" bench --suite=attention-block $small --block_size=20 --steps=2 \
    >out 2>err || fail "no tables by events"
has slow 20 API call launch of a kernel main
has slow 20 main waits for the device
! grep -q 'API call .*launch the step' out || fail "there are calls"
