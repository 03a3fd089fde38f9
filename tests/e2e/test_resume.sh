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

# same_weights RUN WHAT STRAIGHT: the last checkpoint and the text are those of an undisturbed run.
same_weights() {
    last=$(basename "$(ls -d "$3"/ckpt/* | tail -n 1)")
    for file in "ckpt/$last/model.safetensors" "ckpt/$last/optimizer.safetensors" samples.txt; do
        cmp "$3/$file" "$1/$file" || fail "$2: $file differs (SEED=$seed)"
    done
}

# same RUN WHAT [STRAIGHT]: as an undisturbed run, and the log is the same.
same() {
    same_weights "$1" "$2" "${3:-straight}"
    kept "${3:-straight}" >want
    kept "$1" >got
    cmp want got || fail "$2: the kept checkpoints or the best one differ (SEED=$seed)"
    timeless "${3:-straight}" >want
    timeless "$1" >got
    cmp want got || fail "$2: the log differs (SEED=$seed)"
}

# A run so long that it never ends before it is disturbed. Up to any iteration it does the same as a
# shorter one, since the learning rate is constant from 300 on.
long=--max_iters=100000

# set_end RUN...: where the runs are to end when they resume, and $straight, an undisturbed run that
# ends there: 300 iterations, or more if one got further than that before it was stopped.
set_end() {
    iter=$(for run; do ls "$run/ckpt"; done | grep -x '[0-9]*' | sort | tail -n 1)
    iter=$(echo "$iter" | sed 's/^0*\(.\)/\1/')
    end=300 straight=straight
    [ "$iter" -lt 300 ] && return
    end=$(((iter / 50 + 2) * 50)) straight=straight$end
    [ -e $straight ] || "$STROBE" train tiny.conf --out_dir=$straight --max_iters=$end >log
}

# wait_for_line RUN ITER: $child trains, and has recorded this step.
wait_for_line() {
    tries=0
    until grep -qF "\"iter\":$2," "$1/log.jsonl" 2>/dev/null; do
        kill -0 $child 2>/dev/null || fail "the training of $1 ended: $(cat log)"
        tries=$((tries + 1))
        [ $tries -lt 3000 ] || fail "the training of $1 is too slow"
        sleep 0.02
    done
}

# train_until_40 COMMAND...: starts it in the background, as $child, and waits for 40 steps of cut.
train_until_40() {
    rm -rf cut moved other
    "$@" >log 2>&1 &
    child=$!
    wait_for_line cut 40
}

# ended CODE WORDS WHAT: waits for $child.
ended() {
    code=0
    wait $child || code=$?
    [ $code = "$1" ] || fail "$3: exit code $code instead of $1: $(cat log)"
    grep -q "$2" log || fail "$3: '$2' is missing: $(cat log)"
}

# resumes RUN WHAT: to the same end as an undisturbed run.
resumes() {
    set_end "$1"
    "$STROBE" train "$1" --init_from=resume --max_iters=$end >log 2>&1 || fail "$2: $(cat log)"
    same "$1" "$2" $straight
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
    train_until_40 "$STROBE" train tiny.conf --out_dir=cut $long
    kill -$signal $child
    [ $signal = INT ] || kill -$signal $child # to the process, and to its group
    ended 130 'the checkpoint is saved' "SIG$signal"
    command=$(sed -n 's/^  strobe //p' log)
    set_end cut
    "$STROBE" $command --max_iters=$end >log 2>&1 || fail "$command: $(cat log)"
    same cut "SIG$signal" $straight
done

# A comparison forwards a signal that only its own process received.
for signal in INT TERM; do
    rm -rf both
    "$STROBE" compare tiny.conf --seed=1337,7 --out_dir=both $long >log 2>&1 &
    child=$!
    wait_for_line both/seed=1337 40
    kill -$signal $child
    ended 130 'the checkpoint is saved' "compare, SIG$signal"
    set_end both/seed=1337 both/seed=7 # the turns of one may be over
    "$STROBE" compare tiny.conf --seed=1337,7 --out_dir=both --init_from=resume --max_iters=$end \
        >log 2>&1 || fail "compare, SIG$signal, does not resume: $(cat log)"
    same both/seed=1337 "compare, SIG$signal" $straight
    [ -s both/seed=7/summary.json ] || fail "compare, SIG$signal: the second run is missing"
done

# The terminal is gone, the processor time is used up: saved, as with Ctrl-C. But nohup is obeyed.
for signal in HUP XCPU; do
    train_until_40 "$STROBE" train tiny.conf --out_dir=cut $long
    kill -$signal $child
    ended 130 'the checkpoint is saved' "SIG$signal"
    resumes cut "SIG$signal"
done
train_until_40 sh -c 'trap "" HUP; exec "$0" train tiny.conf --out_dir=cut "$1"' "$STROBE" $long
kill -HUP $child
steps=$(grep -c '"kind":"step"' cut/log.jsonl)
wait_for_line cut $((steps + 40)) # it goes on
kill -TERM $child
ended 130 'the checkpoint is saved' nohup
resumes cut nohup

# stderr has no reader any more: saved at the next line.
rm -rf cut
mkfifo pipe
STROBE_LOG=info "$STROBE" train tiny.conf --out_dir=cut --eval_interval=50 $long 2>pipe >/dev/null &
child=$!
sed '/^iter 50:/q' pipe >/dev/null # reads until then, and closes
code=0
wait $child || code=$?
[ $code = 130 ] || fail "closed stderr: exit code $code instead of 130"
[ -n "$(ls cut/ckpt)" ] || fail "closed stderr: nothing was saved"
resumes cut "closed stderr"

# Without stderr at all, messages go nowhere: not into the file that is opened next.
rm -rf cut
STROBE_LOG=info "$STROBE" train tiny.conf --out_dir=cut 2>&- >/dev/null || fail "no stderr: code $?"
same cut "no stderr"

# A file of the log's size is the largest allowed: the checkpoint is saved all the same. The log is
# named as the reason; it lacks the line that did not fit, and no other.
rm -rf cut
limit=$(($(wc -c <straight/ckpt/000300/optimizer.safetensors) / 512 + 1))
rare="--eval_interval=100000 --eval_iters=1"
(
    ulimit -f $limit # of 512 bytes
    # shellcheck disable=SC2086
    exec "$STROBE" train tiny.conf --out_dir=cut $long $rare
) >log 2>&1 &
child=$!
ended 130 'the checkpoint is saved' SIGXFSZ
grep -q 'cut/log.jsonl: File too large (log.jsonl lacks its last lines)' log ||
    fail "SIGXFSZ: no reason: $(cat log)"
iter=$(sed -n 's/.*stopped after \([0-9]*\) of .*/\1/p' log)
[ -e "cut/ckpt/$(printf %06d "$iter")/DONE" ] || fail "SIGXFSZ: iteration $iter is not saved"
end="--max_iters=$((iter + 50))"
"$STROBE" train cut --init_from=resume $end >log 2>&1 || fail "SIGXFSZ: $(cat log)"
# shellcheck disable=SC2086
"$STROBE" train tiny.conf --out_dir=rare $end $rare >log 2>&1 || fail "SIGXFSZ: $(cat log)"
same_weights cut SIGXFSZ rare
timeless rare | grep -vF "\"kind\":\"step\",\"iter\":$((iter - 1))," >want
timeless cut | grep -vF "\"kind\":\"step\",\"iter\":$((iter - 1))," >got
cmp want got || fail "SIGXFSZ: the log lacks more than the line that did not fit"

# A run that is moved while it trains is not saved into any more, and another run that takes its
# place is left alone.
train_until_40 "$STROBE" train tiny.conf --out_dir=cut $long
kill -STOP $child
mv cut moved
"$STROBE" train tiny.conf --out_dir=cut >other 2>&1 || fail "moved, second run: $(cat other)"
kill -CONT $child
ended 1 'was moved to .*/moved while it was in use' moved
grep -q 'train .*/moved --init_from=resume' log || fail "moved: no command: $(cat log)"
same cut "moved, the second run"
resumes moved moved

# A run that is deleted is not created again.
train_until_40 "$STROBE" train tiny.conf --out_dir=cut $long
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
grep -q 'cut/ckpt is a symbolic link' log ||
    fail "ckpt: $(cat log)"
cmp before cut/log.jsonl || fail "ckpt: the log changed"
rm cut/ckpt
mv cut/hidden cut/ckpt

# What a killed writer left is removed when the run is next opened; the user's files are not.
echo x >cut/summary.json.0123456789ab.tmp
echo x >cut/notes.4321.tmp
mkdir cut/ckpt/000050.0123456789ab.tmp
"$STROBE" train cut --init_from=resume >log 2>&1 || fail "leftovers: $(cat log)"
[ "$(echo cut/*.tmp)" = cut/notes.4321.tmp ] || fail "leftovers: $(echo cut/*.tmp)"

[ ! -e cut/ckpt/000050.0123456789ab.tmp ] || fail "leftovers: $(ls cut/ckpt)"

# A kill came after the last save, before what it makes superfluous was removed.
"$STROBE" train tiny.conf --out_dir=early --max_iters=50 >log 2>&1 || fail "early: $(cat log)"
cp -r early/ckpt/000050 cut/ckpt/
rm cut/summary.json
"$STROBE" train cut --init_from=resume >log 2>&1 || fail "superfluous: $(cat log)"
same cut "superfluous"

# The last checkpoint is damaged: the one before it is used.
rm -rf cut
cp -r straight cut
printf x | dd of=cut/ckpt/000300/model.safetensors bs=1 seek=900 conv=notrunc 2>/dev/null
"$STROBE" train cut --init_from=resume >log 2>&1 || fail "damaged: $(cat log)"
same cut "damaged"
echo "ok, $killed kills"
