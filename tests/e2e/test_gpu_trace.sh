#!/bin/sh
# GPU traces on an emulated GPU: each kernel is matched to its node, and what is unknown or
# unavailable is reported.
# test: slow; the GPU is emulated
. "$(dirname "$0")/gpu.sh"
if [ ! -e "$emulator/libcupti.so.13" ] || [ ! -e "$emulator/listener.so" ]; then
    echo "skipped: the CUDA toolkit lacks the headers of CUPTI and NVTX"
    exit 77
fi
. "$(dirname "$0")/tiny.sh"
trace="$STROBE_BUILD/tests/backend/test_trace"
# expect_text TEXT COMMAND...: checks that a line of the output has TEXT
expect_text() {
    words=$1
    shift
    "$@" >"$work/out" 2>&1 || fail "$*: exit code $?: $(cat "$work/out")"
    grep -qF -- "$words" "$work/out" || fail "'$words' is not printed by: $*
$(cat "$work/out")"
}
not() {
    words=$1
    ! grep -qF -- "$words" "$work/out" || fail "'$words' is printed: $(cat "$work/out")"
}

# --- each kernel is matched to its node, however it is launched
for how in EMU_EARLY=0 EMU_EARLY=1 EMU_CUPTI_LATE=1; do
    env $how "$trace" >"$work/out" 2>&1 || fail "$how: $(cat "$work/out")"
    not skipped
done
expect_text '0 dropped, 0 unmatched, by CUPTI 13' "$trace" once
expect_text ': whole' "$trace" once

# --- what is lost is counted, and nothing is guessed
expect_text 'CUPTI records were dropped because its buffers were full' env EMU_CUPTI_DROP=7 \
    "$trace" once
not ' 0 dropped'
not ' 0 unmatched'
not whole

# --- CUPTI is unavailable: one message, and everything else works
expect_text 'refused: libcupti.so.13 is not on this machine' env LD_PRELOAD="$emulator/without.so" \
    EMU_WITHOUT=libcupti "$trace" once
refused='refused: CUPTI cannot begin:'
why='CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: another profiler is attached to this process'
expect_text "$refused $why" env EMU_CUPTI_REFUSE=39 "$trace" once
why='CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: this user, or this container, may not profile'
expect_text "$refused $why" env EMU_CUPTI_REFUSE=35 "$trace" once
expect_text 'refused: CUPTI recorded no kernels although some ran' env EMU_CUPTI_SILENT=1 "$trace" \
    once

# --- hardware counters are unavailable: one sentence with what to do, and everything else works
expect_text 'kernels counted: all' "$trace" count
expect_text 'with NVreg_RestrictProfilingToAdminUsers=0' env EMU_CUPTI_COUNTERS=35 "$trace" count
expect_text 'has to allow profiling for its vGPU' env EMU_CUPTI_COUNTERS=40 "$trace" count
expect_text 'CUPTI cannot ask which hardware counters there are: CUPTI_ERROR_UNKNOWN' \
    env EMU_CUPTI_COUNTERS=999 "$trace" count
expect_text '0 kernels counted: libcupti.so.13 is not on this machine' \
    env LD_PRELOAD="$emulator/without.so" EMU_WITHOUT=libcupti "$trace" count

by_events='profiles time kernels by events between them'
expect_text "CUPTI      missing: libcupti.so.13 is not on this machine; $by_events" \
    env LD_PRELOAD="$emulator/without.so" EMU_WITHOUT=libcupti "$STROBE" info
expect_text 'CUPTI      13.' "$STROBE" info

# --- an attached profiler receives the ranges and the steps to record, and has CUPTI for itself
expect_text 'listener: 0 step' env NVTX_INJECTION64_PATH="$emulator/listener.so" EMU_VERBOSE=1 \
    "$trace" once
for words in 'listener: Strobe' 'listener: 1 forward' 'emulator: cuProfilerStart' \
    'emulator: cuProfilerStop' \
    'refused: another profiler is attached to this process, and CUPTI serves one'; do
    grep -qF "$words" "$work/out" || fail "'$words' is not printed: $(cat "$work/out")"
done

# --- reference/cupti_kernels.c: each of five replayed steps has every kernel of the layers equally
# often
headers=${CUDA:-/usr/local/cuda}
if ${CC:-cc} -O2 -Wall -Wextra -Werror -shared -fPIC -isystem "$headers/include" \
    -isystem "$headers/extras/CUPTI/include" "$(dirname "$0")/../../reference/cupti_kernels.c" \
    -o "$work/cupti_kernels.so" -L"$emulator" -l:libcupti.so.13 -pthread; then
    cd "$work"
    expect_text '' env CUPTI_KERNELS=replay CUPTI_KERNELS_OUT=kernels \
        CUDA_INJECTION64_PATH="$work/cupti_kernels.so" "$STROBE" train tiny.conf --device=cuda \
        --replay=true --max_iters=6 --eval_interval=1000 --eval_iters=1 --threads=0 --out_dir=run
    [ "$(awk '$10 == "attention_forward" && $4 == 10 && $5 == 2' kernels | wc -l)" = 1 ] ||
        fail "not 2 x 5: $(cat kernels)"
    grep -q '^# total [0-9.]* ms; 0 records dropped, 0 without times, 0 of' kernels ||
        fail "no last line: $(cat kernels)"
else
    fail "reference/cupti_kernels.c does not compile"
fi
echo ok
