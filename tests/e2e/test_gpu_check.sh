#!/bin/sh
# Every row of the GPU's kernels on every case of `strobe check`, on an emulated GPU, one process
# per operator, as many at once as there are processors. Then the rows that share work among threads
# or blocks, on an older and smaller GPU, with threads, blocks and copies in another order.
# test: slow shards=6 timeout=1800; the GPU is emulated
set -u
. "$(dirname "$0")/gpu.sh"
STROBE=${STROBE:-$PWD/strobe}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# test_ops checks gradients and expansions. The plain rows have small cases for each of their
# branches, and would take most of the time on large ones.
options='--kernels --small=plain,tiles'
export STROBE STROBE_LOG=warning work options
jobs=$([ -n "${TEST_SHARD-}" ] && echo 1 || nproc) # the runner runs several shards at once

# Keeps in $mine those operators that this shard checks: every N-th of all calls.
shard=${TEST_SHARD:-1/1} item=0
take() {
    mine=
    for op in "$@"; do
        item=$((item + 1))
        [ $((item % ${shard#*/})) != $((${shard%/*} - 1)) ] || mine="$mine $op"
    done
}

# check_all NAME OPERATOR...: all rows, or those of the name $row
row=
check_all() {
    name=$1
    shift
    take "$@"
    # shellcheck disable=SC2086
    printf '%s\n' $mine | xargs -r -P "$jobs" -I{} sh -c \
        '"$STROBE" check --device=cuda --op={} $options $2 >"$work/$1.{}" 2>&1 ||
            touch "$work/failed.$1.{}"' \
        sh "$name" "${row:+--row=$row}"
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

# every ROW OPERATOR...: checks only rows of this name, and that each operator has one
every() {
    row=$1
    shift
    check_all "$how.$row" "$@"
    tried "$how.$row" "$row" "$@"
    row=
}
# One SM: a block of the persistent kernels processes many items, and its rings wrap.
how=alone
export EMU_SMS=1 EMU_EARLY=1
every wgmma ATTENTION ATTENTION_GRAD LINEAR_GELU MATMUL_GELU_GRAD
every wgmma_head ATTENTION ATTENTION_GRAD
every wgmma_sums ATTENTION_GRAD

how=ampere
export EMU_ARCH=80 EMU_SMS=3 EMU_REVERSE=1
every mma ATTENTION ATTENTION_GRAD
every mma_short ATTENTION ATTENTION_GRAD
every mma_sums ATTENTION_GRAD
every mma_tf32 ATTENTION_GRAD
check_all ampere EMBED_GRAD LAYERNORM_GRAD LAYERNORM_GRAD_ADD LAYERNORM_GRAD_DROP RMSNORM_GRAD \
    RMSNORM_GRAD_ADD SUM_LEADING SUM_SQUARES CROSS_ENTROPY_BOTH
echo "ok: $(cat "$work"/*.* | grep -c ' ok$') rows"
