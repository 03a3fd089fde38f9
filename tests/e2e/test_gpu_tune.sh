#!/bin/sh
# The stage before compiling, on an emulated GPU: it writes a tuning table, with which a plan is the
# same byte for byte on a machine without a GPU. Entries of another library and damaged files are
# not used.
# test: slow; the GPU is emulated
. "$(dirname "$0")/gpu.sh"
. "$(dirname "$0")/tiny.sh"
cd "$work"
kernels=$XDG_CACHE_HOME/strobe/kernels
# A kernel takes 300 us of the emulated clock, so few runs are enough.
export XDG_CACHE_HOME="$work/cache" STROBE_LOG=info EMU_KERNEL_US=300
mkdir -p "$kernels" cache/strobe
ln -s "$kernels" cache/strobe/kernels
file=cache/strobe/tuning-emulated-GPU.json
model="tiny.conf --device=cuda --tune=auto --dtype=bfloat16 --n_embd=128 --n_layer=1 --gelu=tanh"
model="$model --bias=true --pad_vocab=64 --block_size=16"
without_gpu="env LD_PRELOAD=$emulator/without.so EMU_WITHOUT=libcuda"

# shellcheck disable=SC2086
{
    "$STROBE" plan $model >default.txt 2>log
    [ ! -e "$file" ] || fail "a plan writes a table"
    grep -q '^# tuning, 15 matmuls: 0 measured, 15 by default$' default.txt ||
        fail "the plan does not report defaults: $(tail -20 default.txt)"

    # --- the table is written, with an entry for every matmul
    expect 0 'tuning 26 matmuls for emulated GPU; the times are kept in ' "$STROBE" tune $model
    grep -q '^# tuning, 26 matmuls: 26 measured, 0 by default$' out ||
        fail "tune measures less than all: $(cat out)"
    cp "$file" made.json
    expect 0 'all 26 matmuls are measured; --remake measures them again' "$STROBE" tune $model
    cmp "$file" made.json || fail "the table changed although nothing was missing"
    expect 0 'tuning 26 matmuls' "$STROBE" tune $model --remake

    # --- the same three inputs give the same plan
    cp "$file" kept.json
    for form in "" --json; do
        "$STROBE" plan $model $form >here.txt 2>log
        "$STROBE" plan $model $form >twice.txt 2>log
        cmp here.txt twice.txt || fail "two plans of the same inputs differ"
        "$STROBE" plan $model $form --tuning=kept.json >file.txt 2>log
        cmp here.txt file.txt || fail "--tuning gives another plan than the stored table"
        rm "$file"
        $without_gpu "$STROBE" plan $model $form --tuning=kept.json >away.txt 2>log ||
            fail "$(cat log)"
        cmp here.txt away.txt || fail "the plan without a GPU differs"
        cp kept.json "$file"
    done
    "$STROBE" plan $model >here.txt 2>log
    grep -q '^# tuning, 15 matmuls: 15 measured, 0 by default$' here.txt ||
        fail "entries are not used: $(tail -20 here.txt)"
    grep -q ' wgmma  *[0-9.]* ' here.txt || fail "measured times are not printed"

    # --- a training measures the missing entries and reports it in one line; the next one does not
    rm "$file"
    run="$STROBE train $model --out_dir=run --overwrite --max_iters=1"
    run="$run --eval_interval=1 --eval_iters=1 --threads=0"
    expect 0 'tuning 26 matmuls for emulated GPU; the times are kept in ' $run
    expect 0 '' $run
    ! grep -q tuning out || fail "measured again: $(cat out)"
    sed -n '/^# micro/,/^$/p' run/plan.txt >trained.txt
    rm "$file"
    expect 0 '' $run --tune=off
    [ ! -e "$file" ] || fail "tune=off measures"
    expect 0 '' $run --deterministic=true
    [ ! -e "$file" ] || fail "deterministic=true measures"

    # --- an entry of another library version or of another kernel, or a damaged one, is not used
    sed 's/"library": [0-9]*/"library": 120000/' kept.json >"$file"
    expect 0 'is not used: it was made with another version of cuBLASLt' "$STROBE" plan $model
    grep -q ' 0 measured, 15 by default$' out || fail "a table of another library is used"
    sed 's/"launch": "[0-9a-f]*"/"launch": "0123456789abcdef"/' kept.json >"$file"
    expect 0 ' 13 measured, 2 by default' "$STROBE" plan $model
    head -c 1000 kept.json >"$file"
    expect 0 'is not a tuning file: line ' "$STROBE" plan $model
    expect 1 'is not a tuning file: line ' "$STROBE" plan $model --tuning="$file"
    expect 2 'device cpu has no kernels to tune' "$STROBE" plan $model --device=cpu \
        --dtype=float32 --tuning=kept.json
    expect 1 'device cpu has no kernels to tune' "$STROBE" tune $model --device=cpu --dtype=float32

    # --- an algorithm that the library refuses: its first heuristic is used, with a message
    sed 's/"algorithm": "0000000000000002/"algorithm": "00000000000000ff/' kept.json >"$file"
    expect 0 'cuBLASLt rejects the tuning table'"'"'s algorithm for ' $run
}
echo ok
