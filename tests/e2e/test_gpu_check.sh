#!/bin/sh
# Every row of the GPU's kernels on every case of `strobe check`, on an emulated GPU, one process
# per operator, as many at once as there are processors. Then the rows that share work among blocks,
# on an older and smaller GPU, with threads, blocks and copies in another order.
# test: slow shards=4 timeout=1800; the GPU is emulated
set -u
. "$(dirname "$0")/gpu.sh"
STROBE=${STROBE:-$PWD/strobe}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export STROBE STROBE_LOG=warning work
jobs=$([ -n "${TEST_SHARD-}" ] && echo 1 || nproc) # the runner runs several shards at once

# The operators of this shard: every N-th.
part() {
    printf '%s\n' "$@" |
        awk -v shard="${TEST_SHARD:-1/1}" '{ split(shard, of, "/") } NR % of[2] == of[1] - 1'
}

# check_all NAME OPERATOR...
check_all() {
    name=$1
    shift
    part "$@" | xargs -P "$jobs" -I{} sh -c \
        '"$STROBE" check --device=cuda --op={} >"$work/$1.{}" 2>&1 || touch "$work/failed.$1.{}"' \
        sh "$name"
    for log in "$work"/failed.*; do
        [ -e "$log" ] || continue
        log=$work/${log#"$work/failed."}
        echo "FAIL: ${log##*/}"
        cat "$log"
        exit 1
    done
}

# tried NAME VARIANT OPERATOR...: checks that the row ran, for the operators of this shard
tried() {
    name=$1 variant=$2
    shift 2
    for op in "$@"; do
        [ -e "$work/$name.$op" ] || [ -z "${TEST_SHARD-}" ] || continue
        grep -q "^$op *$variant .* ok$" "$work/$name.$op" || {
            echo "FAIL: the row $variant of $op did not run"
            cat "$work/$name.$op"
            exit 1
        }
    done
}
# PACK represents all packing: it runs with the matmuls.
operators=$("$STROBE" info --ops |
    sed -n 's/^| `\{0,1\}\([A-Z][A-Z_]*\)`\{0,1\} |.*/\1/p' | grep -vx PACK)
[ "$(echo "$operators" | wc -l)" -gt 50 ] || { echo "FAIL: operators: $operators"; exit 1; }
# shellcheck disable=SC2086
check_all hopper $operators
tried hopper mma ATTENTION ATTENTION_GRAD
tried hopper wgmma ATTENTION ATTENTION_GRAD LINEAR_GELU MATMUL_GELU_GRAD MATMUL
tried hopper mma_short ATTENTION ATTENTION_GRAD
tried hopper wgmma_head ATTENTION ATTENTION_GRAD
tried hopper mma_sums ATTENTION_GRAD
tried hopper wgmma_sums ATTENTION_GRAD
tried hopper plain ATTENTION ATTENTION_GRAD
tried hopper cublaslt MATMUL LINEAR LINEAR_GELU MATMUL_GELU_GRAD MATMUL_SUM
tried hopper tiles MATMUL LINEAR
tried hopper long LAYERNORM LAYERNORM_GRAD RMSNORM ADD_RMSNORM RMSNORM_GRAD RMSNORM_GRAD_ADD SOFTMAX
tried hopper registers RMSNORM ADD_RMSNORM RMSNORM_GRAD RMSNORM_GRAD_ADD
tried hopper beside RMSNORM_GRAD_ADD
tried hopper bf16 LAYERNORM ADD_LAYERNORM LAYERNORM_GRAD LAYERNORM_GRAD_ADD LAYERNORM_GRAD_DROP
tried hopper few EMBED_GRAD CROSS_ENTROPY_BOTH
tried hopper held CROSS_ENTROPY_BOTH
tried hopper places EMBED_GRAD_SUM

# One SM: a block processes many items, and its rings wrap.
EMU_SMS=1 EMU_EARLY=1 check_all alone ATTENTION ATTENTION_GRAD LINEAR_GELU MATMUL_GELU_GRAD
tried alone wgmma ATTENTION ATTENTION_GRAD LINEAR_GELU MATMUL_GELU_GRAD
tried alone wgmma_head ATTENTION ATTENTION_GRAD
tried alone wgmma_sums ATTENTION_GRAD

export EMU_ARCH=80 EMU_SMS=3 EMU_REVERSE=1 EMU_EARLY=1
check_all ampere ATTENTION ATTENTION_GRAD EMBED_GRAD LAYERNORM_GRAD LAYERNORM_GRAD_ADD \
    LAYERNORM_GRAD_DROP RMSNORM_GRAD RMSNORM_GRAD_ADD SUM_LEADING SUM_SQUARES CROSS_ENTROPY_BOTH
tried ampere mma ATTENTION ATTENTION_GRAD
echo "ok: $(cat "$work"/*.* | grep -c ' ok$') rows"
