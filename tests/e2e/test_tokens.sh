#!/bin/sh
# Folders of nanoGPT and llm.c are trained on as they are, and never replaced.
. "$(dirname "$0")/tiny.sh"
configs=$(cd "$(dirname "$0")/../../configs" && pwd)
cd "$work"

# --- nanoGPT's: the configuration of GPT-2, reduced
mkdir data/openwebtext
cp data/tiny/train.bin data/tiny/val.bin data/openwebtext
find data/openwebtext -type f | sort | xargs cksum >before
small="--n_layer=1 --n_head=2 --n_embd=32 --block_size=32 --batch_size=2 --threads=1
    --gradient_accumulation_steps=1 --eval_interval=2 --eval_iters=1 --dtype=float32 --device=cpu"
train() { "$STROBE" train "$configs/gpt2_124m.conf" $small "$@"; }
"$STROBE" plan "$configs/gpt2_124m.conf" $small --summary >out
grep -q 'vocabulary=50257' out || fail "the plan has another vocabulary: $(cat out)"
train --max_iters=3 >out
grep -q '"kind":"tokens"' runs/gpt2_124m/vocabulary.json || fail "not the ids of GPT-2"
grep -q '"vocabulary_size":50257' runs/gpt2_124m/vocabulary.json || fail "another vocabulary"
grep -q '"iter":3' runs/gpt2_124m/log.jsonl || fail "iteration 3 is missing"
grep -qE '^(<[0-9]+>)+$' runs/gpt2_124m/samples.txt || fail "the sample is not made of ids"
expect 0 'val loss' "$STROBE" eval runs/gpt2_124m
"$STROBE" sample runs/gpt2_124m --max_new_tokens=4 --num_samples=1 >out
grep -qE '^<0>(<[0-9]+>){4}$' out || fail "not a text of ids: $(cat out)"
expect 2 'whose texts are not known; put the tokenizer' \
    "$STROBE" sample runs/gpt2_124m --start=Hello
expect 0 'val' train --max_iters=5 --init_from=resume
expect 0 'gpt2_124m' "$STROBE" report runs/gpt2_124m

# --- they are not replaced, and no command that would replace them is advised
for with in "" --force; do
    expect 2 'neither deleted nor replaced' "$STROBE" data openwebtext --from=text $with
    grep -q -e '--force' out && fail "advises --force: $(cat out)"
done
expect 2 'no text given' "$STROBE" data openwebtext --force
find data/openwebtext -type f | sort | xargs cksum | cmp - before || fail "the files were changed"
expect 0 'openwebtext  verified' "$STROBE" data openwebtext
grep -q '50,257 tokens$' out || fail "$(cat out)"
"$STROBE" data openwebtext --json >out
grep -q '"kind":"tokens","vocabulary_size":50257,"train"' out || fail "$(cat out)"

# --- other tokens are another text
cp data/tiny/val.bin data/openwebtext/train.bin
expect 2 'has changed since the run in runs/gpt2_124m began' train --max_iters=7 --init_from=resume
expect 2 'has changed since' "$STROBE" eval runs/gpt2_124m
expect 0 'differs from that of the run' "$STROBE" eval runs/gpt2_124m --dataset=openwebtext

# --- llm.c's: the same tokens with a header of 1024 bytes, in two shards
tokens=$(($(wc -c <data/tiny/train.bin) / 2))
byte() { printf "\\$(printf %03o "$1")"; }
shard() { # FILE FIRST COUNT: tokens of data/tiny/train.bin, numbered from 0
    {
        printf '\210\330\064\001\001\000\000\000'
        byte $(($3 % 256))
        byte $(($3 / 256))
        head -c 1014 /dev/zero
        tail -c +$((2 * $2 + 1)) data/tiny/train.bin | head -c $((2 * $3))
    } >"$1"
}
mkdir data/web data/raw
shard data/web/web_train_000001.bin 0 1001
shard data/web/web_train_000002.bin 1001 $((tokens - 1001))
shard data/web/web_val_000000.bin 0 500
cp data/tiny/train.bin data/raw/train.bin
head -c 1000 data/tiny/train.bin >data/raw/val.bin
for set in web raw; do
    train --max_iters=3 --dataset=$set --out_dir=runs/$set >/dev/null
    timeless runs/$set | grep '"iter"' >$set.log
done
[ -s web.log ] || fail "no iterations are logged"
cmp web.log raw.log || fail "shards give other losses than one file"
truncate -s 3000 data/web/web_train_000001.bin
words='web_train_000001.bin has 3000 bytes, but its header says 1001 tokens, which are 3026 bytes'
expect 1 "$words" train --max_iters=3 --dataset=web --out_dir=runs/cut
expect 1 'make one under another name' "$STROBE" data web

# --- what a training does not read when it begins, `strobe data` does
yes 'abcdefgh' | head -c 9400000 >text
"$STROBE" data big --from=text >/dev/null
printf '\005' | dd of=data/big/train.bin bs=1 seek=70000 conv=notrunc 2>/dev/null
expect 0 'val' train --max_iters=1 --dataset=big --out_dir=runs/big
expect 1 'train.bin is corrupt: its SHA-256 is' "$STROBE" data big
