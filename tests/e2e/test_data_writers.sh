#!/bin/sh
# Several processes write, read and train on one data set; writers are killed. The set is whole
# every time.
# test: slow release; hundreds of processes
. "$(dirname "$0")/tiny.sh"
cd "$work"
PAIRS=${PAIRS:-60}
KILLS=${KILLS:-40}
tr a z <text >other # the same token numbers, another vocabulary: a mixture would go unnoticed
size=$(wc -c <text)

# The set is verified and is that of one text.
expect_whole() {
    "$STROBE" data shared >shown 2>&1 || fail "$1: $(cat shown)"
    grep -q 'from  *\(text\|other\)$' shown || fail "$1: $(cat shown)"
    # a killed writer leaves what it had written, until the next one writes
    [ -z "$(names | grep -vx 'shared\.[0-9a-f]*\.tmp')" ] ||
        fail "$1: $(ls -A data)"
}
names() { ls -A data | grep -vx 'shared\|tiny' || true; } # in data, besides the sets

# expect_writer CODE FILE: it wrote, or it says in one line that another one does.
expect_writer() {
    [ "$1" = 0 ] && return
    [ "$(wc -l <"$2")" = 1 ] || fail "more than one line: $(cat "$2")"
    grep -q 'another process is writing in data\|data/shared already exists' "$2" ||
        fail "exit code $1: $(cat "$2")"
}

# --- pairs of writers: new sets, and sets that are replaced
i=0
while [ $i -lt "$PAIRS" ]; do
    force=--force
    if [ $((i % 2)) = 0 ]; then
        rm -rf data/shared
        force=
    fi
    "$STROBE" data shared --from text $force >one 2>&1 &
    pid=$!
    code=0
    "$STROBE" data shared --from other $force >two 2>&1 || code=$?
    first=0
    wait $pid || first=$?
    expect_writer $first one
    expect_writer $code two
    [ $first = 0 ] || [ $code = 0 ] || fail "pair $i: neither wrote: $(cat one two)"
    expect_whole "pair $i"
    i=$((i + 1))
done
[ -z "$(names)" ] || fail "left behind: $(names)"

# --- writers that are killed at some moment: at equal distances over the time that writing takes
begin=$(date +%s%N)
for i in 1 2 3; do "$STROBE" data shared --from other --force >/dev/null; done
took=$((($(date +%s%N) - begin) / 3000000 + 1)) # in ms
killed=0 i=0
while [ $i -lt "$KILLS" ]; do
    "$STROBE" data shared --from other --force >one 2>&1 &
    pid=$!
    sleep "$(awk -v ms=$((took * i / KILLS)) 'BEGIN { printf "%.3f", ms / 1000 }')"
    kill -9 $pid 2>/dev/null || true
    code=0
    wait $pid 2>/dev/null || code=$?
    [ $code = 0 ] || [ $code = 137 ] || fail "kill $i: exit code $code: $(cat one)"
    [ $code = 0 ] || killed=$((killed + 1))
    expect_whole "kill $i"
    i=$((i + 1))
done
[ $killed -ge $((KILLS / 4)) ] || fail "only $killed of $KILLS kills came in time"
"$STROBE" data shared --from text --force >/dev/null
[ -z "$(names)" ] || fail "left behind: $(names)"

# --- a training begins and goes on while the set is replaced by one of the same text and size
(while [ ! -e stop ]; do "$STROBE" data shared --from text --force >/dev/null 2>&1; done) &
writer=$!
for run in 1 2 3; do
    expect 0 '40 iterations' "$STROBE" train tiny.conf --dataset=shared --data_dir=data \
        --out_dir=runs/$run --max_iters=40
    cmp data/tiny/meta.json runs/$run/vocabulary.json >/dev/null ||
        grep -q '"kind":"characters"' runs/$run/vocabulary.json || fail "no vocabulary in the run"
done
touch stop
wait $writer || true
cmp runs/1/ckpt/000040/model.safetensors runs/3/ckpt/000040/model.safetensors ||
    fail "trainings of the same text differ"
expect_whole "after the training"

# --- the same with a set that is not held in memory, because its train.bin has more than 16 MiB:
# a training reads it row by row, and of the old set, while it is replaced by another one and back
cp text longer
for i in 1 2 3 4 5 6 7 8 9 10 11; do
    cat longer longer >twice
    mv twice longer
done
rev longer >backwards # the same vocabulary
big="--dataset=big --data_dir=bigs --lr_decay_iters=300 --eval_interval=100"
"$STROBE" data big --data_dir=bigs --from longer >/dev/null
[ "$(wc -c <bigs/big/train.bin)" -gt 16777216 ] || fail "the set is too small for this test"
inode() { stat -c %i bigs/big; }

# until_true WHAT COMMAND...: while the training goes on
until_true() {
    what=$1 tries=0
    shift
    until "$@" 2>/dev/null; do
        kill -0 $training 2>/dev/null || fail "the training ended: $(cat out)"
        tries=$((tries + 1))
        [ $tries -lt 1200 ] || fail "$what takes too long"
        sleep 0.05
    done
}
is_replaced() { [ "$(inode)" != "$before" ]; }
# shellcheck disable=SC2086
"$STROBE" train tiny.conf $big --out_dir=runs/big --max_iters=100000 >out 2>&1 &
training=$!
for text in backwards longer; do
    steps=$(grep -c '"kind":"step"' runs/big/log.jsonl 2>/dev/null || true)
    before=$(inode)
    until_true "training" grep -q "\"iter\":$((${steps:-0} + 30))," runs/big/log.jsonl
    "$STROBE" data big --data_dir=bigs --from $text --force >one 2>&1 || fail "$(cat one)"
    until_true "replacing the set" is_replaced
done
steps=$(grep -c '"kind":"step"' runs/big/log.jsonl)
until_true "training" grep -q "\"iter\":$((steps + 30))," runs/big/log.jsonl
kill -TERM $training
code=0
wait $training || code=$?
[ $code = 130 ] || fail "exit code $code instead of 130: $(cat out)"
iter=$(sed -n 's/.*stopped after \([0-9]*\) of .*/\1/p' out)
end=--max_iters=$(((iter / 100 + 1) * 100))
# shellcheck disable=SC2086
"$STROBE" train runs/big --init_from=resume $end >out 2>&1 || fail "$(cat out)"
# shellcheck disable=SC2086
"$STROBE" train tiny.conf $big --out_dir=runs/whole $end >out 2>&1 || fail "$(cat out)"
name=$(ls runs/whole/ckpt | tail -n 1)
cmp runs/big/ckpt/$name/model.safetensors runs/whole/ckpt/$name/model.safetensors ||
    fail "a training beside writers ends with other weights"
timeless runs/whole >want
timeless runs/big >got
cmp want got || fail "a training beside writers has another log"

# --- a set whose name is another one's with a suffix is left alone
for name in shared.tmp shared.old shared.old.tmp; do
    "$STROBE" data $name --from text >/dev/null
done
"$STROBE" data shared --from text --force >/dev/null
for name in shared.tmp shared.old shared.old.tmp; do
    expect 0 verified "$STROBE" data $name
done
echo "ok: $size bytes of text, $killed of $KILLS writers killed"
