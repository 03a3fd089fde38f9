#!/bin/sh
# A run that was killed at any instant, or stopped by Ctrl-C, resumes and ends in the same bits as
# an uninterrupted one: weights, moments, losses, text.
# test: alone slow release; it kills runs at random times and compares files
. "$(dirname "$0")/tiny.sh"
cd "$work"
kills=10 rounds=20
sed -i 's|^eval_interval.*|eval_interval = 50|' tiny.conf
seed=${SEED:-$$}

# lists the checkpoints, and for each the best evaluation that it records
kept() {
    for state in "$1"/ckpt/*/state.json; do
        echo "${state#"$1"}" $(grep -o '"best_[a-z_]*": *[-0-9.e]*' "$state")
    done
}

same() {
    for file in ckpt/000300/model.safetensors ckpt/000300/optimizer.safetensors samples.txt; do
        cmp "straight/$file" "$1/$file" || fail "$2: $file differs (SEED=$seed)"
    done
    kept straight >want
    kept "$1" >got
    cmp want got || fail "$2: the kept checkpoints or the best one differ (SEED=$seed)"
    timeless straight >want
    timeless "$1" >got
    cmp want got || fail "$2: the log differs (SEED=$seed)"
}

begin=$(date +%s%N)
"$STROBE" train tiny.conf --out_dir=straight >log
took=$((($(date +%s%N) - begin) / 1000000))

# Random delays for sleep, without repetition, below 120 % of a whole run, so that some kills come
# too late and change nothing.
instants=$(awk -v seed="$seed" -v n=$((2 * rounds)) -v most="$took" 'BEGIN { srand(seed)
    for (i = 0; i < n; i++) printf "%.3f ", rand() * most * (i % 2 ? 0.8 : 1.2) / 1000 }')
set -- $instants
killed=0

# kill_after SECONDS COMMAND...
kill_after() {
    seconds=$1
    shift
    "$@" >log 2>&1 &
    child=$!
    sleep "$seconds"
    kill -9 $child 2>/dev/null && killed=$((killed + 1))
    wait $child 2>/dev/null || true
}

round=0
while [ $killed -lt $kills ] && [ $round -lt $rounds ]; do
    round=$((round + 1))
    rm -rf cut
    kill_after "$1" "$STROBE" train tiny.conf --out_dir=cut
    # Killed before it created its directory: nothing to resume.
    [ -e cut/config.conf ] || "$STROBE" train tiny.conf --out_dir=cut --overwrite --max_iters=1 >log
    kill_after "$2" "$STROBE" train tiny.conf --out_dir=cut --init_from=resume
    "$STROBE" train tiny.conf --out_dir=cut --init_from=resume >log 2>&1 ||
        fail "round $round does not resume: $(cat log)"
    same cut "round $round, killed after $1 s and $2 s"
    shift 2
done
[ $killed -ge $kills ] || fail "only $killed of $((2 * rounds)) kills came in time"

# Ctrl-C: the step is finished and saved, and the printed command resumes the run.
for signal in INT TERM; do
    rm -rf cut
    "$STROBE" train tiny.conf --out_dir=cut >log 2>&1 &
    child=$!
    while [ "$(cat cut/log.jsonl 2>/dev/null | wc -l)" -lt 40 ]; do sleep 0.01; done
    kill -$signal $child
    [ $signal = INT ] || kill -$signal $child # to the process, and to its group
    code=0
    wait $child || code=$?
    [ $code = 130 ] || fail "SIG$signal: exit code $code instead of 130: $(cat log)"
    grep -q 'the checkpoint is saved' log || fail "SIG$signal: no message: $(cat log)"
    command=$(sed -n 's/^  strobe //p' log)
    "$STROBE" $command >log 2>&1 || fail "$command: $(cat log)"
    same cut "SIG$signal"
done

# A comparison forwards a signal that only its own process received.
for signal in INT TERM; do
    rm -rf both
    "$STROBE" compare tiny.conf --seed=1337,7 --out_dir=both >log 2>&1 &
    child=$!
    while [ "$(cat both/seed=1337/log.jsonl 2>/dev/null | wc -l)" -lt 40 ]; do sleep 0.01; done
    kill -$signal $child
    code=0
    wait $child || code=$?
    [ $code = 130 ] || fail "compare, SIG$signal: exit code $code instead of 130: $(cat log)"
    grep -q 'the checkpoint is saved' log ||
        fail "compare, SIG$signal: its training did not save: $(cat log)"
    "$STROBE" compare tiny.conf --seed=1337,7 --out_dir=both --init_from=resume >log 2>&1 ||
        fail "compare, SIG$signal, does not resume: $(cat log)"
    same both/seed=1337 "compare, SIG$signal"
    [ -s both/seed=7/summary.json ] || fail "compare, SIG$signal: the second run is missing"
done

# train_until_40 COMMAND...: starts it in the background, as $child, and waits for 40 lines.
train_until_40() {
    rm -rf cut moved other
    "$@" >log 2>&1 &
    child=$!
    while [ "$(cat cut/log.jsonl 2>/dev/null | wc -l)" -lt 40 ]; do sleep 0.01; done
}

# ended CODE WORDS WHAT: waits for $child.
ended() {
    code=0
    wait $child || code=$?
    [ $code = "$1" ] || fail "$3: exit code $code instead of $1: $(cat log)"
    grep -q "$2" log || fail "$3: '$2' is missing: $(cat log)"
}

# The terminal is gone, the processor time is used up: saved, as with Ctrl-C. But nohup is obeyed.
for signal in HUP XCPU; do
    train_until_40 "$STROBE" train tiny.conf --out_dir=cut
    kill -$signal $child
    ended 130 'the checkpoint is saved' "SIG$signal"
    "$STROBE" train cut --init_from=resume >log 2>&1 || fail "SIG$signal: $(cat log)"
    same cut "SIG$signal"
done
train_until_40 sh -c 'trap "" HUP; exec "$0" train tiny.conf --out_dir=cut' "$STROBE"
kill -HUP $child
wait $child || fail "nohup: $(cat log)"
same cut "nohup"

# stderr has no reader any more: saved at the next line.
rm -rf cut
mkfifo pipe
STROBE_LOG=info "$STROBE" train tiny.conf --out_dir=cut --eval_interval=50 2>pipe >/dev/null &
child=$!
sed 3q pipe >/dev/null # reads three lines, then closes
code=0
wait $child || code=$?
[ $code = 130 ] || fail "closed stderr: exit code $code instead of 130"
[ -n "$(ls cut/ckpt)" ] || fail "closed stderr: nothing was saved"
"$STROBE" train cut --init_from=resume >log 2>&1 || fail "closed stderr: $(cat log)"
same cut "closed stderr"

# Without stderr at all, messages go nowhere: not into the file that is opened next.
rm -rf cut
STROBE_LOG=info "$STROBE" train tiny.conf --out_dir=cut 2>&- >/dev/null || fail "no stderr: code $?"
same cut "no stderr"

# A file of the log's size is the largest allowed: the checkpoint is saved all the same.
rm -rf cut
limit=$(($(wc -c <straight/ckpt/000300/optimizer.safetensors) / 512 + 1))
(
    ulimit -f $limit # of 512 bytes
    exec "$STROBE" train tiny.conf --out_dir=cut --max_iters=100000 --eval_interval=100000 \
        --eval_iters=1
) >log 2>&1 &
child=$!
ended 130 'the checkpoint is saved' SIGXFSZ
grep -q 'File too large' log || fail "SIGXFSZ: no reason: $(cat log)"
iter=$(sed -n 's/.*stopped after \([0-9]*\) of .*/\1/p' log)
[ -e "cut/ckpt/$(printf %06d "$iter")/DONE" ] || fail "SIGXFSZ: iteration $iter is not saved"

# A run that is moved while it trains: its own folder gets the checkpoint, and another run that
# takes its place is left alone.
train_until_40 "$STROBE" train tiny.conf --out_dir=cut
mv cut moved
"$STROBE" train tiny.conf --out_dir=cut >other 2>&1 || fail "moved, second run: $(cat other)"
ended 1 'was moved to .*/moved while it was in use' moved
grep -q 'train .*/moved --init_from=resume' log || fail "moved: no command: $(cat log)"
same cut "moved, the second run"
"$STROBE" train moved --init_from=resume >log 2>&1 || fail "moved: $(cat log)"
same moved "moved"

# A run that is deleted is not created again.
train_until_40 "$STROBE" train tiny.conf --out_dir=cut
kill -STOP $child # removing it takes a moment
rm -rf cut
kill -CONT $child
ended 1 'cut was deleted while it was in use' deleted
[ ! -e cut ] || fail "deleted: the folder is there again: $(ls -R cut)"

# Checkpoints that cannot be listed: refused, and nothing is changed.
cp -r straight cut
mv cut/ckpt cut/hidden
ln -s ckpt cut/ckpt
cp cut/log.jsonl before
"$STROBE" train cut --init_from=resume --max_iters=400 >log 2>&1 && fail "resumed without ckpt"
grep -q 'the checkpoints cannot be read, so nothing was changed' log || fail "ckpt: $(cat log)"
cmp before cut/log.jsonl || fail "ckpt: the log changed"
rm cut/ckpt
mv cut/hidden cut/ckpt

# What a killed writer left is removed when the run is next opened; the user's files are not.
echo x >cut/summary.json.0123456789ab.tmp
echo x >cut/log.jsonl.4321.tmp
echo x >cut/notes.4321.tmp
"$STROBE" train cut --init_from=resume >log 2>&1 || fail "leftovers: $(cat log)"
[ "$(echo cut/*.tmp)" = cut/notes.4321.tmp ] || fail "leftovers: $(echo cut/*.tmp)"

# The last checkpoint is damaged: the one before it is used.
rm -rf cut
cp -r straight cut
printf x | dd of=cut/ckpt/000300/model.safetensors bs=1 seek=900 conv=notrunc 2>/dev/null
"$STROBE" train cut --init_from=resume >log 2>&1 || fail "damaged: $(cat log)"
same cut "damaged"
echo "ok, $killed kills"
