#!/bin/sh
# Ranks that are processes with a GPU each, emulated, joined by a stand-in for NCCL: losses are
# those of one rank, however and in whichever type gradients are summed; captured steps; a rank that
# fails, ends or hangs.
# test: slow; the GPUs are emulated
# shellcheck disable=SC2086
. "$(dirname "$0")/gpu.sh"
. "$(dirname "$0")/tiny.sh"
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" # MPI leaks
export EMU_DEVICES=2
cd "$work"
command -v mpirun >/dev/null && "$STROBE" info 2>/dev/null | grep -q 'joined by MPI' || {
    echo "skipped: ranks that are processes (no MPI)"
    exit 77
}

steps=4
short="--max_iters=$steps --eval_interval=2 --eval_iters=1 --learning_rate=1e-3 --warmup_iters=2"
short="$short --threads=0 --bucket_mb=1 --device=cuda --gradient_accumulation_steps=2"

# train NAME OPTIONS...
train() {
    run=$1
    shift
    "$STROBE" train tiny.conf --out_dir="$run" $short "$@" >"$run.log" 2>&1 ||
        fail "$run: $(cat "$run.log")"
}

# losses RUN: the losses of steps and evaluations
losses() {
    sed -n 's/.*"loss":\([^,}]*\).*/\1/p; s/.*"val_loss":\([^,}]*\).*/\1/p' "$1/log.jsonl"
}

# near A B MOST: the same losses, relative to them within MOST
near() {
    losses "$1" >a
    losses "$2" >b
    [ "$(wc -l <a)" = 7 ] && [ "$(wc -l <b)" = 7 ] || fail "$1 or $2 does not have 7 losses"
    worst=$(paste a b | awk '{ d = ($1 - $2) / $2; if (d < 0) d = -d; if (d > w) w = d }
        END { printf "%.2e", w }')
    awk -v w="$worst" -v m="$3" 'BEGIN { exit !(w <= m) }' ||
        fail "losses of $1 and $2 differ by $worst, limit $3"
    echo "$1, $2: losses differ by at most $worst"
}

two="--ranks=2 --ranks_by=mpi"
train one
for overlap in none flat parameter bucket; do
    train $overlap $two --overlap=$overlap
    near $overlap one 1e-5
done
train zero $two --zero=1
near zero one 1e-5
train replayed $two --replay=true
near replayed one 1e-5
train units $two --zero=3 --replay=true
near units one 1e-5
train four --gradient_accumulation_steps=4
train four2 $two --gradient_accumulation_steps=4 --replay=true
near four2 four 1e-5
train units4 $two --gradient_accumulation_steps=4 --zero=3 --overlap=none
near units4 four 1e-5

# sums in bf16: a gradient has three digits, a loss four
train half $two --reduce_dtype=bfloat16
near half one 1e-3
cmp -s half/ckpt/00000$steps/model.safetensors bucket/ckpt/00000$steps/model.safetensors &&
    fail "reduce_dtype=bfloat16: the weights of float32"
train one16 --dtype=bfloat16
train half16 $two --dtype=bfloat16 --reduce_dtype=bfloat16 --replay=true
near half16 one16 1e-3
train zero16 $two --dtype=bfloat16 --reduce_dtype=bfloat16 --zero=1
near zero16 half16 1e-5
train half4 $two --gradient_accumulation_steps=4 --reduce_dtype=bfloat16
near half4 four 1e-3
expect 1 "processes with a GPU each" "$STROBE" train tiny.conf $short --ranks=2 \
    --ranks_by=threads --reduce_dtype=bfloat16 --out_dir=no
expect 1 "needs a GPU for each rank" "$STROBE" train tiny.conf $short --ranks=2 --device=cpu \
    --reduce_dtype=bfloat16 --out_dir=no

# a profile has the kernels of NCCL as collectives, replayed or not
emulated_machine
for replay in true false; do
    "$STROBE" profile tiny.conf $short $two --overlap=parameter --steps=3 --replay=$replay \
        --out_dir=profile >table || fail "profile, replay=$replay: $(cat table)"
    [ "$(grep -c ' ALL_REDUCE  ' table)" -gt 10 ] || fail "profile, replay=$replay: $(cat table)"
    grep -q "NCCL's kernels include" table || fail "profile, replay=$replay: $(cat table)"
    grep -q 'could not be attributed' table && fail "profile, replay=$replay: $(cat table)"
    sum=$(sed -n 's/^ranks *communication takes \([0-9.]*\) ms.*/\1/p' table)
    shown=$(gzip -dc profile/trace.json.gz | grep '"ph":"X".*"cat":"communication"' |
        sed 's/.*"dur":\([0-9.]*\).*/\1/' | awk '{ us += $1 } END { printf "%.4f", us / 3000 }')
    awk -v a="$sum" -v b="$shown" 'BEGIN { exit !(a > 0 && a < 1.01 * b && a > 0.99 * b) }' ||
        fail "replay=$replay: communication of $sum ms in the profile, $shown ms in the trace"
done

# a profile reports why a rank failed
for how in init call async; do
    words='NCCL cannot sum'
    [ $how = init ] && words='NCCL cannot join'
    EMU_NCCL=$how EMU_NCCL_AFTER=1 "$STROBE" profile tiny.conf $short $two --steps=3 \
        --rank_timeout=4 --replay=true --out_dir=profile >out 2>&1 && fail "$how: a profile"
    grep -q "$words" out || fail "profile, $how: no '$words' in: $(cat out)"
    echo "profile, $how: $(grep '^strobe: ' out | grep -v ': warning: ')"
done
expect 2 "start the command without mpirun" mpirun -q --oversubscribe --allow-run-as-root -n 2 \
    "$STROBE" profile tiny.conf $short --dtype=float32,bfloat16 --out_dir=profile

# failed WORDS HOW...: the training ends within a minute, with one sentence, as the stand-in fails.
# From the second step on it is captured, and an abort of NCCL waits until the graph is freed.
failed() {
    words=$1
    shift
    began=$(date +%s)
    rm -rf broken
    env "$@" "$STROBE" train tiny.conf --out_dir=broken $short $two --rank_timeout=4 \
        --replay=true --max_iters=20 >out 2>&1 && fail "$*: it did not fail"
    [ $(($(date +%s) - began)) -lt 60 ] || fail "$*: it ended only after a minute"
    grep -q -- "$words" out || fail "$*: no '$words' in: $(cat out)"
    [ "$(grep '^strobe: ' out | grep -vc ': warning: ')" = 1 ] ||
        fail "$*: not one sentence: $(cat out)"
    echo "$*: $(grep '^strobe: ' out | grep -v ': warning: ')"
}
failed "rank 1 .*NCCL cannot join the GPUs" EMU_NCCL=init
failed "rank 1 .*NCCL cannot sum: internal error" EMU_NCCL=call EMU_NCCL_AFTER=1
failed "NCCL cannot sum over the ranks" EMU_NCCL=async EMU_NCCL_AFTER=3 EMU_NCCL_RANK=0
failed "rank 1 .*NCCL cannot sum over the ranks" EMU_NCCL=async EMU_NCCL_AFTER=3
failed "all ranks wait" EMU_NCCL=hang EMU_NCCL_AFTER=3

# ended SIGNAL WORDS: a signal to the second rank ends the training within half a minute, with one
# sentence, and a whole checkpoint
ended() {
    rm -rf endless
    run="train tiny.conf --out_dir=$work/endless"
    "$STROBE" $run $short $two --rank_timeout=4 --max_iters=100000 \
        --replay=true --eval_interval=2 >log 2>out &
    pid=$!
    while [ "$(ls endless/ckpt 2>/dev/null | wc -l)" -lt 1 ]; do sleep 0.1; done
    second=$(pgrep -f "$run" | sort -n | tail -n 1)
    kill "-$1" "$second"
    began=$(date +%s)
    wait $pid && fail "SIG$1: exit code 0"
    seconds=$(($(date +%s) - began))
    [ $seconds -lt 30 ] || fail "SIG$1: all ended only after $seconds s"
    grep -q "rank 1 (process $second on .*) $2" out || fail "SIG$1: $(cat out)"
    [ "$(grep '^strobe: ' out | grep -vc ': warning: \|: rank 0 .* has ended$')" = 1 ] ||
        fail "SIG$1: not one sentence: $(cat out)"
    "$STROBE" eval endless >log || fail "SIG$1: the checkpoint cannot be read"
    echo "SIG$1, after $seconds s: $(grep '^strobe: ' out | grep -v ': warning: ')"
}
ended KILL "has ended"
ended STOP "is stopped"
# the same if NCCL's work on the GPU cannot be ended
export EMU_NCCL_ABORT=never
ended KILL "has ended"
ended STOP "is stopped"
unset EMU_NCCL_ABORT
echo ok
