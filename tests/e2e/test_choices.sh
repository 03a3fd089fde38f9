#!/bin/sh
# The keys that Strobe chooses itself: a resume keeps what the run began with, every command may be
# given auto, and the variants of a comparison get the same number of threads.
. "$(dirname "$0")/tiny.sh"
cd "$work"
unset OMP_NUM_THREADS
export STROBE_LOG=info
sed -i '/^threads/d; /^dtype/d; /^replay/d; /^pad_vocab/d
    s/^max_iters.*/max_iters = 6/; s/^eval_interval.*/eval_interval = 3/' tiny.conf
echo 'device = cpu' >>tiny.conf

# has RUN LINE: in the record of the run.
has() {
    grep -qx "$2" "$1/config.conf" || fail "$1: no line '$2': $(grep "^${2%% *}" "$1/config.conf")"
    used=$(grep -o '"threads":[ 0-9]*' "$1/env.json" | tr -dc 0-9)
    [ "${2%% *}" != threads ] || [ "$used" = "${2##* }" ] || fail "$1: $used threads were used"
}

# The number of threads is kept, whatever the machine does when the run is continued.
OMP_NUM_THREADS=2 expect 0 '6 iterations' "$STROBE" train tiny.conf --out_dir=run
has run 'threads = 2'
OMP_NUM_THREADS=2 expect 0 '12 iterations' "$STROBE" train tiny.conf --out_dir=straight \
    --max_iters=12
OMP_NUM_THREADS=1 expect 0 '3 iterations' "$STROBE" train run --init_from=resume --max_iters=9
has run 'threads = 2'
OMP_NUM_THREADS=1 expect 0 '3 iterations' "$STROBE" train tiny.conf --out_dir=run \
    --init_from=resume --max_iters=12
has run 'threads = 2'
cmp run/ckpt/000012/model.safetensors straight/ckpt/000012/model.safetensors ||
    fail "other bits after a resume"
expect 0 'goes on with threads = 1; until now it was 2' "$STROBE" train run --init_from=resume \
    --max_iters=15 --threads=1
has run 'threads = 1'
OMP_NUM_THREADS=2 expect 0 '6 iterations' "$STROBE" train tiny.conf --out_dir=shared
expect 0 '3 iterations' "$STROBE" train shared --init_from=resume --max_iters=9 --ranks=2 \
    --ranks_by=threads --gradient_accumulation_steps=40

# Variants that train one after the other.
expect 0 '' "$STROBE" compare tiny.conf --flash=false,true --one-by-one --out_dir=both
n=$(sed -n 's/^threads = //p' both/flash=false/config.conf)
[ "$n" -gt 0 ] || fail "a comparison left the number of threads to its variants"
has both/flash=false "threads = $n"
has both/flash=true "threads = $n"

# auto on the command line, and in a configuration that was edited before the first checkpoint.
few="--num_samples=1 --max_new_tokens=5"
for key in dtype replay pad_vocab; do
    # shellcheck disable=SC2086
    expect 0 '' "$STROBE" sample run --$key=auto $few
    expect 0 'computed with dtype=float32' "$STROBE" eval run --$key=auto
done
expect 0 '' "$STROBE" train tiny.conf --out_dir=edited --max_iters=0
sed -i 's/^dtype.*/dtype = auto/; s/^pad_vocab.*/pad_vocab = auto/; /^replay/d' edited/config.conf
rm -rf edited/ckpt
expect 0 '3 iterations' "$STROBE" train edited --init_from=resume --max_iters=3
has edited 'dtype = float32'
has edited 'replay = false'
has edited 'pad_vocab = 0'
expect 0 '"dtype":' "$STROBE" eval run --json

# Replay follows the device, also in a run or a fork of one that was begun on a GPU.
sed -i 's/^replay.*/replay = true/; s/^device.*/device = auto/' edited/config.conf
rm -rf edited/ckpt edited/summary.json
expect 0 'goes on with replay = false; until now it was true' "$STROBE" train edited \
    --init_from=resume --max_iters=6 --device=cpu
sed -i 's/^replay.*/replay = true/; s/^device.*/device = auto/' edited/config.conf
expect 0 '3 iterations' "$STROBE" train --init_from=edited --out_dir=forked --max_iters=9 \
    --device=cpu

# A run that is stopped says where its time went.
"$STROBE" train tiny.conf --out_dir=stopped --max_iters=100000 >out 2>&1 &
until grep -q 'iter 3:' out 2>/dev/null; do sleep 0.1; done
kill -INT $!
wait $! || :
grep -q '^wall time .* = startup' out || fail "no wall time: $(cat out)"
