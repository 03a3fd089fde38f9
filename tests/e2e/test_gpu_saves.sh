#!/bin/sh
# A checkpoint of a GPU is written while steps run; if that fails once, the run ends, but the
# weights that it has reached are saved.
# test: slow; the GPU is emulated
. "$(dirname "$0")/gpu.sh"
. "$(dirname "$0")/tiny.sh"
cd "$work"
preload=$STROBE_BUILD/faults/preload.so
run="$STROBE train tiny.conf --device=cuda --max_iters=40 --eval_interval=4 --out_dir=run"
run="$run --overwrite"
failed=0 at=0
while [ $failed -lt 3 ]; do
    at=$((at + 1))
    [ $at -lt 40 ] || fail "no save of a checkpoint failed"
    code=0
    # shellcheck disable=SC2086
    env LD_PRELOAD="$preload" FAULTS_UNDER="$work" FAULTS_CALL=rename FAULTS_ERROR=EIO \
        FAULTS_AT=$at $run >out 2>&1 || code=$?
    if [ $code = 99 ]; then
        echo "skipped: calls that fail: $(cat out)"
        exit 77
    fi
    grep -q 'the checkpoint of iteration [0-9]* was not saved' out || continue
    failed=$((failed + 1))
    [ $code = 1 ] || fail "rename $at: exit code $code: $(cat out)"
    grep -q '40 iterations' out && continue # the last one failed
    grep -q 'the checkpoint is saved. Continue with' out || fail "rename $at: $(cat out)"
    "$STROBE" train run --init_from=resume --device=cuda --max_iters=44 >>out 2>&1 ||
        fail "rename $at does not resume: $(cat out)"
done
