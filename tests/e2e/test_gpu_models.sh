#!/bin/sh
# Models that are only timed, on an emulated GPU: the loss of the first step is the CPU's, at every
# rung, replayed or not.
# test: slow; the GPU is emulated
. "$(dirname "$0")/gpu.sh"

fail() {
    echo "$*" >&2
    exit 1
}

# loss OPTIONS...: of the first step
loss() {
    "$STROBE" bench --dtype=float32 --replay=false "$@" --warmup=1 --steps=1 --json \
        2>"$STROBE_BUILD/models.log" |
        sed -n 's/.*"loss":\([0-9.e+-]*\)}.*/\1/p'
}

# near MOST CONFIG...: compares CPU and GPU; the GPU runs with the options in $here
near() {
    most=$1
    shift
    on_cpu=$(loss "$@" --device=cpu)
    # shellcheck disable=SC2086
    on_gpu=$(loss "$@" --device=cuda $here)
    awk -v a="$on_cpu" -v b="$on_gpu" -v most="$most" \
        'BEGIN { d = a - b; exit !(a > 0 && d * d <= most * most * a * a) }' ||
        fail "$* $here: the loss is $on_gpu, on the CPU $on_cpu: $(cat "$STROBE_BUILD/models.log")"
    echo "$* $here: $on_gpu"
}

block="configs/attention_block.conf --batch_size=2 --block_size=20 --n_embd=64"
for small in "$block" "$block --attention_scale=none --attention_mask=none" \
    "$block --attention_scale=none --attention_mask=causal" \
    "configs/elu.conf --batch_size=3 --block_size=1000" "configs/toy.conf"; do
    # shellcheck disable=SC2086
    set -- $small
    here="--fusion=primitive --flash=false"
    near 1e-5 "$@"
    here="--fusion=op --flash=false"
    near 1e-5 "$@"
    here="--fusion=full --replay=true"
    near 1e-5 "$@"
    here="--dtype=tfloat32"
    near 1e-3 "$@"
    here="--fusion=full --dtype=bfloat16 --replay=true"
    near 1e-2 "$@"
    here="--fusion=op --flash=false --dtype=bfloat16"
    near 1e-2 "$@"
done
# Heads of 256, forward and backward by FMAs.
here=
near 1e-5 configs/attention_block.conf --batch_size=1 --block_size=12
"$STROBE" plan configs/attention_block.conf --device=cuda --dtype=float32 |
    grep -q "ATTENTION_GRAD  *fma" ||
    fail "heads of 256 have another row"
