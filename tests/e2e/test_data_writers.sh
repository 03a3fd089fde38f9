#!/bin/sh
# Several processes write, read and train on one data set; writers are killed. The set is whole
# every time.
# test: slow; hundreds of processes
. "$(dirname "$0")/tiny.sh"
cd "$work"
PAIRS=${PAIRS:-100}
KILLS=${KILLS:-60}
tr a z <text >other # the same token numbers, another vocabulary: a mixture would go unnoticed
size=$(wc -c <text)

# The set is verified and is that of one text.
expect_whole() {
    "$STROBE" data shared >shown 2>&1 || fail "$1: $(cat shown)"
    grep -q 'from  *\(text\|other\)$' shown || fail "$1: $(cat shown)"
    # a killed writer leaves its lock and what it had written, until the next one writes
    [ -z "$(names | grep -vx '\.shared\.lock\|shared\.[0-9a-f]*\(\.old\)\?\.tmp')" ] ||
        fail "$1: $(ls -A data)"
}
names() { ls -A data | grep -vx 'shared\|tiny' || true; } # in data, besides the sets

# expect_writer CODE FILE: it wrote, or it says in one line that another one does.
expect_writer() {
    [ "$1" = 0 ] && return
    [ "$(wc -l <"$2")" = 1 ] || fail "more than one line: $(cat "$2")"
    grep -q 'another process is writing data/shared\|data/shared already exists' "$2" ||
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

# --- writers that are killed at some moment
i=0
while [ $i -lt "$KILLS" ]; do
    "$STROBE" data shared --from other --force >one 2>&1 &
    pid=$!
    sleep "0.0$(printf %02d $((i % 30)))"
    kill -9 $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    expect_whole "kill $i"
    i=$((i + 1))
done
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

# --- a set whose name is another one's with a suffix is left alone
for name in shared.tmp shared.old shared.old.tmp; do
    "$STROBE" data $name --from text >/dev/null
done
"$STROBE" data shared --from text --force >/dev/null
for name in shared.tmp shared.old shared.old.tmp; do
    expect 0 verified "$STROBE" data $name
done
echo "ok: $size bytes of text"
