#!/bin/sh
# Ranks that share ranks, emulated: every collective, several in flight; trainings of 2 ranks have
# the losses of one rank, however gradients are summed; what is refused, and a rank that fails.
# test: slow; the GPU is emulated
# shellcheck disable=SC2086
. "$(dirname "$0")/gpu.sh"
. "$(dirname "$0")/tiny.sh"
rows=$STROBE_BUILD/tests/backend/test_collective_rows
cd "$work"

# asynchronous work as late as allowed, at once, and in another order
for how in NOTHING=1 EMU_EARLY=1 EMU_REVERSE=1; do
    env "$how" "$rows" >log 2>&1 && grep -q '^cuda: 5 ranks' log || fail "$how: $(cat log)"
done

steps=4
short="--max_iters=$steps --eval_interval=2 --eval_iters=1 --learning_rate=1e-3 --warmup_iters=2"
short="$short --threads=0 --gradient_accumulation_steps=2 --bucket_mb=1 --device=cuda"

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

train one
for overlap in none flat parameter bucket; do
    train $overlap --ranks=2 --overlap=$overlap
    near $overlap one 1e-5
    cmp $overlap/ckpt/00000$steps/model.safetensors none/ckpt/00000$steps/model.safetensors ||
        fail "overlap=$overlap: other weights than with overlap=none"
done
EMU_EARLY=1 train early --ranks=2
near early one 1e-5
train zero --ranks=2 --zero=1
near zero one 1e-5
train units --ranks=2 --zero=3
EMU_EARLY=1 train units_early --ranks=2 --zero=3
EMU_REVERSE=1 train units_reverse --ranks=2 --zero=3
for run in units units_early units_reverse; do near $run one 1e-5; done
grep -q 'ALL_REDUCE *ranks' bucket/plan.txt || fail "the plan has no sum over ranks"
grep -q '^replay = false$' bucket/config.conf || fail "several ranks replay a captured step"
train one16 --dtype=bfloat16 --deterministic=true
train two16 --dtype=bfloat16 --deterministic=true --ranks=2
near two16 one16 1e-3
train units16 --dtype=bfloat16 --deterministic=true --ranks=2 --zero=3
near units16 one16 1e-3

# a checkpoint does not depend on the number of ranks, nor on replay
train replayed --replay=true --max_iters=2
"$STROBE" train replayed --init_from=resume --max_iters=$steps --ranks=2 --replay=false \
    >log 2>&1 || fail "$(cat log)"
near replayed one 1e-5

# --- what is refused
expect 1 "replay=true: a captured step cannot wait for ranks = 2 threads" \
    "$STROBE" train tiny.conf $short --ranks=2 --replay=true --out_dir=no
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" # MPI leaks
[ "$("$STROBE" info | grep -c "joined by MPI")" = 0 ] || expect 1 "there is no cuda:1" \
    "$STROBE" train tiny.conf $short --ranks=2 --ranks_by=mpi --out_dir=no
expect 1 "at most 8 ranks share a GPU" "$STROBE" train tiny.conf $short --ranks=16 \
    --gradient_accumulation_steps=16 --out_dir=no
"$STROBE" memory tiny.conf $short --vocab=8 --json >memory.json
bytes=$(sed -n '/"total"/ { s/[^0-9]//g; p; q; }' memory.json)
EMU_MEMORY=$((bytes * 3 / 2)) train fits
export EMU_MEMORY=$((bytes * 3 / 2))
expect 1 "2 ranks need " \
    "$STROBE" train tiny.conf $short --ranks=2 --out_dir=no
unset EMU_MEMORY
[ -e no ] && fail "a refused training left its folder"

# --- a kernel that fails ends all ranks, with one sentence
export EMU_FAULT=sum_ranks EMU_FAULT_AFTER=3
expect 1 "illegal memory access" "$STROBE" train tiny.conf $short --ranks=2 --out_dir=broken
[ "$(grep -c '^strobe: [^w]' out)" = 1 ] || fail "not one sentence: $(cat out)"
echo ok
