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

# The last checkpoint is damaged: the one before it is used.
rm -rf cut
cp -r straight cut
printf x | dd of=cut/ckpt/000300/model.safetensors bs=1 seek=900 conv=notrunc 2>/dev/null
"$STROBE" train cut --init_from=resume >log 2>&1 || fail "damaged: $(cat log)"
same cut "damaged"
echo "ok, $killed kills"
