#!/bin/sh
# The data set is damaged while a training uses it: the training says so, and nothing is lost. What
# is no file is refused as a text.
. "$(dirname "$0")/tiny.sh"
cd "$work"
long="--max_iters=100000 --lr_decay_iters=300 --log_interval=1"
STROBE_LOG=warning

# start RUN OPTION...: trains until some steps are in the log.
start() {
    run=$1
    shift
    "$STROBE" train tiny.conf --out_dir=$run $long "$@" >out 2>&1 &
    training=$!
    tries=0
    until grep -q '"iter":30,' $run/log.jsonl 2>/dev/null; do
        kill -0 $training 2>/dev/null || fail "the training ended: $(cat out)"
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fail "the training is too slow"
        sleep 0.05
    done
}

# ended RUN WORDS: it ended with one sentence, and the last checkpoint has all of its steps.
ended() {
    code=0
    wait $training || code=$?
    [ $code = 1 ] || fail "exit code $code: $(cat out)"
    grep -q -- "$2" out || fail "'$2' is not printed: $(cat out)"
    grep -q 'BUG' out && fail "$(cat out)"
    words='stopped after \([0-9]*\) of 100000 iterations; the checkpoint is saved'
    iter=$(sed -n "s/.*$words.*/\1/p" out)
    [ -n "$iter" ] || fail "no checkpoint was saved: $(cat out)"
    [ -e "$1/ckpt/$(printf %06d "$iter")/DONE" ] || fail "no checkpoint $iter: $(ls "$1/ckpt")"
    last=$(sed -n 's/.*"kind":"step","iter":\([0-9]*\),.*/\1/p' "$1/log.jsonl" | tail -n 1)
    [ "$last" = $((iter - 1)) ] || fail "the last step is $last, the checkpoint $iter"
    grep -q '"complete": false' "$1/summary.json" || fail "no summary"
}

# --- a set that is too large to stay in memory: its train.bin has more than 16 MiB
cp text longer
for i in 1 2 3 4 5 6 7 8 9 10 11; do
    cat longer longer >twice
    mv twice longer
done
"$STROBE" data long --from longer >/dev/null
[ "$(wc -c <data/long/train.bin)" -gt 16777216 ] || fail "the set is too small for this test"
sed -i 's/^dataset.*/dataset = long/' tiny.conf
cp -r data kept

# --- train.bin is cut: while training steps read it, and while evaluations do
for cut in 1000 0; do
    start runs/cut$cut
    truncate -s $cut data/long/train.bin
    ended runs/cut$cut "data/long/train.bin was cut to $cut bytes while it was in use"
    expect 1 'has '$cut' bytes, but meta.json says' "$STROBE" train runs/cut$cut --init_from=resume
    cp kept/long/train.bin data/long/train.bin
done
start runs/eval --eval_interval=1 --eval_iters=100
truncate -s 0 data/long/train.bin
ended runs/eval 'data/long/train.bin was cut to 0 bytes'
cp kept/long/train.bin data/long/train.bin

# --- with the file back, the run goes on to the same weights
iter=$(ls runs/cut0/ckpt | tail -n 1 | sed 's/^0*//')
end="--max_iters=$((iter + 30)) --lr_decay_iters=300"
expect 0 "30 iterations" "$STROBE" train runs/cut0 --init_from=resume $end
expect 0 "$((iter + 30)) iterations" "$STROBE" train tiny.conf --out_dir=runs/whole $end
name=$(printf %06d $((iter + 30)))
cmp runs/cut0/ckpt/$name/model.safetensors runs/whole/ckpt/$name/model.safetensors ||
    fail "the run that was stopped ends with other weights"

# --- tokens that the vocabulary lacks are written into the file
start runs/tokens
tr '\000-\377' '\377' <kept/long/train.bin |
    dd of=data/long/train.bin conv=notrunc bs=1M 2>/dev/null
words='data/long/train.bin: token [0-9]* is 65535, but the vocabulary has only [0-9]* tokens; '
words=${words}recreate
ended runs/tokens "$words"
cp kept/long/train.bin data/long/train.bin

# unharmed RUN: the training goes on after its set was damaged.
unharmed() {
    last=$(grep -c '"kind":"step"' "$1/log.jsonl")
    until [ "$(grep -c '"kind":"step"' "$1/log.jsonl")" -gt $((last + 30)) ]; do
        kill -0 $training 2>/dev/null || fail "the training ended: $(cat out)"
        sleep 0.05
    done
    kill -TERM $training
    wait $training && fail "the training ended with 0"
    grep -q 'the checkpoint is saved' out || fail "$(cat out)"
}

# --- the set is removed: what is open stays whole. A small set is in memory: it may be cut.
start runs/removed
rm -r data/long
unharmed runs/removed
sed -i 's/^dataset.*/dataset = tiny/' tiny.conf
start runs/small
truncate -s 0 data/tiny/train.bin data/tiny/val.bin
unharmed runs/small
rm -r data/tiny
cp -r kept/tiny data/tiny

# --- too few tokens
printf 'ab' >two
"$STROBE" data two --from two >/dev/null
expect 2 'the training split of two has 1 tokens, but block_size = 32 needs 33' \
    "$STROBE" train tiny.conf --dataset=two --data_dir=data --out_dir=runs/two
printf '' >none
expect 1 'none is empty' "$STROBE" data none --from none
[ ! -e runs/two ] && [ ! -e data/none ] || fail "a refused command created a folder"

# --- what is no file
mkfifo pipe
expect 1 'pipe: is a FIFO, not a regular file' timeout 20 "$STROBE" data x --from pipe
expect 1 '/dev/zero: is a device, not a regular file' timeout 20 "$STROBE" data x --from /dev/zero
expect 1 'data: is a directory, not a regular file' timeout 20 "$STROBE" data x --from data
truncate -s 64T huge 2>/dev/null || truncate -s 8T huge
expect 1 'use a shorter text' timeout 20 "$STROBE" data x --from huge

# --- names that are not UTF-8, and names that would move a terminal's cursor
odd=$(printf 'caf\351')
cp text "$odd"
expect 0 'from        caf\xe9' "$STROBE" data odd --from "$odd"
"$STROBE" data "$odd" --data_dir="$odd.d" --from text --json >json
grep -q '"name":"caf\\\\xe9","data_dir":"caf\\\\xe9.d"' json || fail "$(cat json)"
expect 2 'not a valid data set name' "$STROBE" data "$(printf 'a\033[2Jb')" --from text
echo ok
