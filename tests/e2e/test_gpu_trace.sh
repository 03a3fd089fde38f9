#!/bin/sh
# What a profile sees of a GPU, on an emulated one: whose each kernel is, and that what cannot be told, or not be had, is said.
# test: slow; the GPU is emulated
. "$(dirname "$0")/gpu.sh"
if [ ! -e "$emulator/libcupti.so.13" ] || [ ! -e "$emulator/listener.so" ]; then
    echo "skipped: the CUDA toolkit has no headers of CUPTI and NVTX"
    exit 77
fi
. "$(dirname "$0")/tiny.sh"
trace="$STROBE_BUILD/tests/backend/test_trace"
# says SENTENCE COMMAND...: a line of what is printed has it
says() {
    words=$1
    shift
    "$@" >"$work/out" 2>&1 || fail "$*: exit code $?: $(cat "$work/out")"
    grep -qF -- "$words" "$work/out" || fail "'$words' is not said by: $*
$(cat "$work/out")"
}
not() {
    words=$1
    ! grep -qF -- "$words" "$work/out" || fail "'$words' is said: $(cat "$work/out")"
}

# --- each kernel is of its node, however the work is done
for how in EMU_EARLY=0 EMU_EARLY=1 EMU_CUPTI_LATE=1; do
    env $how "$trace" >"$work/out" 2>&1 || fail "$how: $(cat "$work/out")"
    not skipped
done
says '0 dropped, 0 unmatched, by CUPTI 13' "$trace" once
says ': whole' "$trace" once

# --- what is lost is counted, and nothing is guessed
says 'CUPTI records were dropped because its buffers were full' env EMU_CUPTI_DROP=7 "$trace" once
not ' 0 dropped'
not ' 0 unmatched'
not whole

# --- CUPTI is not to be had: one sentence, and all else goes on
says 'refused: libcupti.so.13 is not on this machine' env LD_PRELOAD="$emulator/without.so" EMU_WITHOUT=libcupti "$trace" once
says 'refused: CUPTI cannot begin: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: another profiler is attached to this process' \
    env EMU_CUPTI_REFUSE=39 "$trace" once
says 'refused: CUPTI cannot begin: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: this user, or this container, may not profile' \
    env EMU_CUPTI_REFUSE=35 "$trace" once
says 'refused: CUPTI recorded no kernels although some ran' env EMU_CUPTI_SILENT=1 "$trace" once
says 'CUPTI      missing: libcupti.so.13 is not on this machine; profiles time kernels by events between them' \
    env LD_PRELOAD="$emulator/without.so" EMU_WITHOUT=libcupti "$STROBE" info
says 'CUPTI      13.' "$STROBE" info

# --- a profiler that is attached hears the ranges and which steps to look at, and has CUPTI for itself
says 'listener: 0 step' env NVTX_INJECTION64_PATH="$emulator/listener.so" EMU_VERBOSE=1 "$trace" once
for words in 'listener: Strobe' 'listener: 1 forward' 'emulator: cuProfilerStart' 'emulator: cuProfilerStop' \
    'refused: another profiler is attached to this process, and CUPTI serves one'; do
    grep -qF "$words" "$work/out" || fail "'$words' is not said: $(cat "$work/out")"
done

# --- the second opinion: of five steps that are played, each has every kernel of the layers as often
headers=${CUDA:-/usr/local/cuda}
if ${CC:-cc} -O2 -Wall -Wextra -Werror -shared -fPIC -isystem "$headers/include" -isystem "$headers/extras/CUPTI/include" \
    "$(dirname "$0")/../../reference/cupti_kernels.c" -o "$work/cupti_kernels.so" -L"$emulator" -l:libcupti.so.13 -pthread; then
    cd "$work"
    says '' env CUPTI_KERNELS=replay CUPTI_KERNELS_OUT=kernels CUDA_INJECTION64_PATH="$work/cupti_kernels.so" \
        "$STROBE" train tiny.conf --device=cuda --replay=true --max_iters=6 --eval_interval=1000 --eval_iters=1 --threads=0 --out_dir=run
    [ "$(awk '$10 == "attention_forward" && $4 == 10 && $5 == 2' kernels | wc -l)" = 1 ] || fail "not 2 x 5: $(cat kernels)"
    grep -q '^# total [0-9.]* ms; 0 records dropped, 0 without times, 0 of' kernels || fail "no end: $(cat kernels)"
else
    fail "reference/cupti_kernels.c does not compile"
fi
echo ok
