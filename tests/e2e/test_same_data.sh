#!/bin/sh
# A run goes on with its own text and its own checkpoints only, from any folder.
. "$(dirname "$0")/tiny.sh"
cd "$work"
short="--max_iters=4 --eval_interval=2 --eval_iters=1"
mkdir home elsewhere
cp -r data home/data
sed -i '/^data_dir/d' tiny.conf
cp tiny.conf home/
cd home
"$STROBE" train tiny.conf $short --out_dir=runs/a >/dev/null
"$STROBE" train tiny.conf $short --out_dir=runs/b --seed=7 >/dev/null

# --- another text with the same characters
cp -r data kept
rev ../text >other
"$STROBE" data tiny --from=other --force >/dev/null
cp runs/a/vocabulary.json before
words="the text of data set tiny has changed since the run in runs/a began"
expect 2 "$words" "$STROBE" train runs/a --init_from=resume --max_iters=6
expect 2 "$words" "$STROBE" train tiny.conf $short --out_dir=runs/a --init_from=resume --max_iters=6
expect 2 "$words" "$STROBE" eval runs/a
expect 2 "$words" "$STROBE" eval runs/a --best
expect 2 "$words" "$STROBE" eval runs/a --data_dir="$PWD/data"
expect 0 'the text of data set tiny differs' "$STROBE" eval runs/a --dataset=tiny
cmp before runs/a/vocabulary.json || fail "the record of the run's text was changed"
rm -r data
mv kept data

# --- from another folder; moved
for run in "../home/runs/a" "$work/home/runs/a"; do
    (cd ../elsewhere && expect 0 'val loss' "$STROBE" eval $run)
done
cd ../elsewhere
expect 0 'val loss' "$STROBE" train ../home/runs/a --init_from=resume --max_iters=6
cd "$work"
mv home moved
cd elsewhere
expect 1 'name the folder in which it is with --data_dir' "$STROBE" eval ../moved/runs/a
expect 0 'val loss' "$STROBE" train ../moved/runs/a --init_from=resume --max_iters=8 \
    --data_dir=../moved/data
expect 0 'val loss' "$STROBE" eval ../moved/runs/a
cd "$work"

# --- a checkpoint of another run
cd moved
cp -r runs/a/ckpt/000008 runs/b/ckpt/
cp runs/b/log.jsonl before
words="runs/b/ckpt/000008 is a checkpoint of another run"
expect 2 "$words" "$STROBE" train runs/b --init_from=resume --max_iters=9
expect 2 "$words" "$STROBE" eval runs/b
expect 2 "$words" "$STROBE" sample runs/b
cmp before runs/b/log.jsonl || fail "the log was changed"
rm -r runs/b/ckpt/000008
expect 0 'val loss' "$STROBE" train runs/b --init_from=resume --max_iters=6 --data_dir=data
