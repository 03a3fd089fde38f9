#!/bin/sh
# The CS336 model from outside: planned and timed without a data set; with one it trains, generates
# text and resumes.
# test: slow
. "$(dirname "$0")/tiny.sh"
configs=$PWD/configs
cd "$work"
small="--n_layer=2 --n_head=2 --n_embd=32 --d_ff=80 --block_size=32 --device=cpu --threads=1"

# --- no data set is required
for size in small medium large xl 2.7b xl2026 10b; do
    expect 0 'model=cs336' "$STROBE" plan "$configs/cs336_$size.conf" --summary --device=cpu
    grep -q 'vocabulary=10000' out || fail "$size has another vocabulary"
    grep -q 'data set' out && fail "$size requires a data set"
done
# shellcheck disable=SC2086
expect 0 'tokens/s' "$STROBE" bench "$configs/cs336_small.conf" $small --warmup=0 --steps=2
# shellcheck disable=SC2086
expect 0 'SWIGLU_GRAD' "$STROBE" profile "$configs/cs336_small.conf" $small --steps=2
# shellcheck disable=SC2086
expect 0 'block 1 saves' "$STROBE" memory "$configs/cs336_small.conf" $small

# --- training: rows of the token table that the text does not use are padding
steps=$(fewer 200 40) middle=$((steps / 2)) last=ckpt/$(printf %06d $steps)/model.safetensors
train="--dataset=tiny --data_dir=$work/data --max_iters=$steps --eval_interval=$middle"
train="$train --eval_iters=2 --learning_rate=1e-2"
# shellcheck disable=SC2086
expect 2 'more than vocab_size = 5' "$STROBE" train "$configs/cs336_small.conf" $small $train \
    --vocab_size=5 --out_dir=refused
# shellcheck disable=SC2086
"$STROBE" train "$configs/cs336_small.conf" $small $train --out_dir=whole >log
loss=$(sed -n '/"kind":"eval"/h; ${x; s/.*"val_loss":\([0-9]*\)\..*/\1/p}' whole/log.jsonl)
[ "$loss" = 1 ] || [ "$loss" = 0 ] || [ $steps -lt 200 ] ||
    fail "the loss of the trained model is $loss: $(tail -n 1 whole/log.jsonl)"
[ -s whole/samples.txt ] || fail "no text was generated"
expect 0 'val loss' "$STROBE" eval whole
expect 0 'a' "$STROBE" sample whole --start=ab --num_samples=1 --max_new_tokens=20 --temperature=0

# --- a resumed run ends in the same bits
# shellcheck disable=SC2086
"$STROBE" train "$configs/cs336_small.conf" $small $train --out_dir=half --max_iters=$middle >log
"$STROBE" train half --init_from=resume --max_iters=$steps >log
cmp whole/$last half/$last ||
    fail "the resumed run differs"
# shellcheck disable=SC2086
expect 2 'd_ff' "$STROBE" train half --init_from=resume --d_ff=96
