#!/bin/sh
# strobe data --tokenizer: one text is split as nanoGPT does, documents by number and seed; the same
# bytes for any number of threads, from packed files, and after a kill; errors name file and line.
. "$(dirname "$0")/tiny.sh"
tokenizer=$PWD/tests/tokenizer
cd "$work"
data() { "$STROBE" data "$@" --tokenizer="$tokenizer"; }
tokens() { od -An -v -tu2 -w2 "$1" | tr -d ' ' | tr '\n' ' '; }

# One text: int(0.9 n) of its characters, not bytes, and no end of a document.
{ printf 'the dog \303\251\303\251\303\251 '; head -c 700 text; } >one.txt
characters=$(LC_ALL=C tr -d '\200-\277' <one.txt | wc -c)
printf '%s' "$(data one --from=one.txt)" | grep -q 'documents   1' || fail "one document"
left=$((characters * 9 / 10 + 3)) # three characters of two bytes
head -c $left one.txt | "$STROBE" tokenize --raw --tokenizer="$tokenizer" |
    cmp - data/one/train.bin ||
    fail "the training part of one text"
tail -c +$((left + 1)) one.txt | "$STROBE" tokenize --raw --tokenizer="$tokenizer" |
    cmp - data/one/val.bin || fail "the validation part of one text"
# Its excerpt joins the tokens of a character.
"$STROBE" data one | grep -qF 'begins      the dog ééé' || fail "begins: $("$STROBE" data one)"
"$STROBE" data one --json | grep -q '"begins":"the dog ééé' || fail "begins in JSON"
data piped --from=- <one.txt >/dev/null
cmp data/one/train.bin data/piped/train.bin || fail "the standard input"

# Documents: lines of JSON and files; each goes to one split and ends with token 266.
awk 'BEGIN { for (i = 0; i < 3000; i++) printf "{\"text\": \"the dog %d \\u00e9\"}\n", i }' \
    >docs.jsonl
echo '{"text": ' >bad.jsonl
data bad --from=bad.jsonl --data_dir=refused 2>/dev/null && fail "a line that is not JSON"
[ ! -e refused ] || fail "a refused data set leaves a folder"
data docs --from=docs.jsonl --val_share=0.25 | grep -q 'documents   3,000' || fail "documents"
ends=$(cat data/docs/train.bin data/docs/val.bin | od -An -v -tu2 -w2 | grep -c '^ *266$')
[ "$ends" = 3000 ] || fail "$ends ends of documents"
val=$(od -An -v -tu2 -w2 data/docs/val.bin | grep -c '^ *266$')
[ "$val" -gt 600 ] && [ "$val" -lt 900 ] || fail "$val of 3000 documents are validation data"
OMP_NUM_THREADS=5 data docs5 --from=docs.jsonl --val_share=0.25 >/dev/null 2>&1
cmp data/docs/train.bin data/docs5/train.bin && cmp data/docs/val.bin data/docs5/val.bin ||
    fail "the number of threads changes the set"
data docs2 --from=docs.jsonl --val_share=0.25 --seed=1 >/dev/null
cmp -s data/docs/val.bin data/docs2/val.bin && fail "--seed changes nothing"
mkdir -p folder/b && head -n 1000 docs.jsonl >folder/a.jsonl
tail -n +1001 docs.jsonl | head -n 1000 >folder/b/c.jsonl
tail -n 1000 docs.jsonl >folder/d.jsonl
data folder --from=folder --val_share=0.25 >/dev/null
cmp data/docs/train.bin data/folder/train.bin || fail "a folder is in another order"
data files --from=folder/a.jsonl folder/b folder/d.jsonl --val_share=0.25 >/dev/null
cmp data/docs/val.bin data/files/val.bin || fail "several files"
if data gz --from=docs.jsonl >/dev/null && gzip -k docs.jsonl; then
    data gz --force --from=docs.jsonl.gz --val_share=0.25 >out 2>&1 || fail "gzip: $(cat out)"
    cmp data/docs/train.bin data/gz/train.bin || fail "a packed file has other tokens"
    { cat docs.jsonl.gz && head -c 100000 /dev/zero; } >zeros.jsonl.gz
    data zeros --from=zeros.jsonl.gz --val_share=0.25 >out 2>&1 || fail "zeros: $(cat out)"
    cmp data/docs/train.bin data/zeros/train.bin || fail "zeros after a packed file are read"
    head -c 4000 docs.jsonl.gz >cut.jsonl.gz
    expect 1 'cut.jsonl.gz is cut: its compressed text does not end' \
        "$STROBE" data cut --from=cut.jsonl.gz --tokenizer="$tokenizer"
fi
# A file of zstd, also one that begins with a frame to be skipped, as those of pzstd do.
if command -v zstd >/dev/null && zstd -q docs.jsonl && data zst --from=docs.jsonl.zst >out 2>&1
then
    { printf '\120\052\115\030\004\000\000\000abcd' && zstd -qc docs.jsonl; } >skip.jsonl.zst
    data zst --force --from=skip.jsonl.zst --val_share=0.25 >out 2>&1 || fail "zstd: $(cat out)"
    cmp data/docs/train.bin data/zst/train.bin || fail "zstd: other tokens"
fi
mkdir texts && printf 'the dog' >texts/1 && : >texts/2 && printf 'the' >texts/3
data texts --from=texts --val_share=0.3 --seed=3 >/dev/null
[ "$(cat data/texts/*.bin | wc -c)" = 12 ] || fail "files as documents, one of them empty"

# A vocabulary of 18 MB: what is written can be read.
{
    printf '{"pre_tokenizer": {"type": "ByteLevel"}, "model": {"merges": [], "vocab": '
    sed 's/} *$//' "$tokenizer/vocab.json"
    awk 'BEGIN { for (i = 0; i < 300; i++) long = long "x"
        for (i = 270; i < 60000; i++) printf ", \"%s%d\": %d", long, i, i; print "}}}" }'
} >wide.json
"$STROBE" data wide --from=one.txt --tokenizer=wide.json >out || fail "a large vocabulary"
grep -q 'vocabulary  60,000 byte' out || fail "a large vocabulary: $(cat out)"

# Special tokens are text, unless asked for.
printf '{"text": "a<|endoftext|>"}\n{"text": "a"}\n{"text": "a"}\n{"text": "a"}\n' >special.jsonl
data plain --from=special.jsonl --val_share=0.5 >/dev/null
data asked --from=special.jsonl --val_share=0.5 --special >/dev/null
[ "$(cat data/asked/*.bin | wc -c)" = 18 ] || fail "--special"
[ "$(cat data/plain/*.bin | wc -c)" -gt 30 ] || fail "special tokens without --special"

# Trains, and the run writes text without its data set.
"$STROBE" train tiny.conf --data_dir=data --dataset=docs --max_iters=3 --out_dir=run >/dev/null
rm -rf data/docs5
"$STROBE" sample run --start='the dog' --max_new_tokens=3 --num_samples=1 | grep -q '^the dog' ||
    fail "sampling"
"$STROBE" eval run >out || fail "eval"
grep -q '^perplexity: train .*; bits per byte: train' out || fail "eval: $(cat out)"
# A perplexity is e to the loss, and a token has more than one byte.
"$STROBE" eval run --eval_iters=200 --json >out
awk -F'[:,]' '/val_loss/ { l = $2 } /val_perplexity/ { p = $2 } /val_bits/ { b = $2 }
    END { r = exp(l) / p; exit !(r > 0.9999 && r < 1.0001 && b > 0.5 && b < l / log(2)) }' out ||
    fail "perplexity or bits per byte: $(cat out)"
printf 'the dog' |
    "$STROBE" sample run --start=FILE:- --max_new_tokens=3 --num_samples=1 --top_p=0.5 |
    grep -q '^the dog' || fail "a prompt from the standard input"
# Keys of the checkpoint that this machine does not support are replaced.
sed -i 's/replay = false/replay = true/; s/dtype = float32/dtype = tfloat32/' run/config.conf
state=$(echo run/ckpt/*/state.json)
before=$(sha256sum <"$state")
sed -i 's/replay = false/replay = true/; s/dtype = float32/dtype = tfloat32/' "$state"
after=$(sha256sum <"$state")
sed -i "s/${before%% *}/${after%% *}/" "${state%/*}/DONE"
expect 0 'dtype=tfloat32 of the checkpoint is not supported here: dtype=float32 is used' \
    env STROBE_LOG=info "$STROBE" eval run --device=cpu

# Killed at any moment: the set is complete or not there, and a second try makes the same one.
i=0
while [ $i -lt 30 ]; do cat docs.jsonl; i=$((i + 1)); done >large.jsonl
data large --from=large.jsonl >/dev/null
for ms in 0.02 0.05 0.1 0.2; do
    "$STROBE" data killed --from=large.jsonl --tokenizer="$tokenizer" >/dev/null 2>&1 &
    sleep $ms
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    [ ! -e data/killed ] || "$STROBE" data killed >/dev/null || fail "a half of a set"
    data killed --force --from=large.jsonl >/dev/null
    cmp data/large/train.bin data/killed/train.bin && cmp data/large/val.bin data/killed/val.bin ||
        fail "other bytes after a kill"
    rm -rf data/killed
done
[ "$(find data -name '*.tmp' | wc -l)" = 0 ] || fail "leftovers: $(find data -name '*.tmp')"

# A signal ends the wait for a standard input that says nothing.
mkfifo silent
exec 3<>silent
"$STROBE" data waits --from=- --tokenizer="$tokenizer" <silent 3>&- >out 2>&1 &
waiting=$!
sleep 0.5
kill -TERM $waiting
code=0
wait $waiting || code=$?
[ $code = 130 ] && [ ! -e data/waits ] || fail "SIGTERM: exit code $code: $(cat out)"

# A full disk: a sentence, and the set that is there stays; no file is left.
cat >inner <<'END'
mkdir full && mount -t tmpfs -o size=400k tmpfs full || exit 0
make() { "$STROBE" data "$@" --data_dir=full --tokenizer="$tokenizer" 2>&1; }
make old --from=one.txt >/dev/null
{
    make new --from=large.jsonl; echo $?
    make old --force --from=large.jsonl; echo $?
    make new --from=- <large.jsonl; echo $?
} >said
find full -type f | sort >left
"$STROBE" data old --data_dir=full >shown
END
export tokenizer
if unshare -rm sh inner 2>/dev/null && [ -e said ]; then
    printf 'strobe: %s\n1\n' 'full/new/train.bin: No space left on device' \
        'full/old/train.bin: No space left on device' \
        'a copy of the standard input in full: No space left on device' |
        cmp - said || fail "a full disk: $(cat said)"
    [ "$(grep -c full/old/ left)" = 3 ] && [ "$(wc -l <left)" = 3 ] || fail "left: $(cat left)"
    grep -q verified shown || fail "the old set: $(cat shown)"
fi

refuse() {
    code=$1 words=$2
    shift 2
    expect "$code" "$words" "$STROBE" data new --tokenizer="$tokenizer" "$@"
}
printf '{"text": "a"}\n\n{"text": 1}\n' >bad.jsonl
refuse 1 'bad.jsonl: line 3 has no text in "text"' --from=bad.jsonl
printf '{"text": "a"}\n{"text": "a\n' >bad.jsonl
refuse 1 'bad.jsonl: line 2 is not JSON' --from docs.jsonl bad.jsonl
printf '\n\n' >bad.jsonl
refuse 2 'bad.jsonl has no documents' --from=bad.jsonl
refuse 2 '--seed=-1: 0 to 4294967295 are possible' --from=docs.jsonl --seed=-1
mkdir empty
refuse 2 'empty has no files' --from=empty
refuse 2 '--val_share is a share' --from=docs.jsonl --val_share=2
printf 'a' >short
refuse 2 'too short to split' --from=short
refuse 1 'nothere: No such file' --from=nothere
refuse 2 'no text given' --data_dir=data
[ ! -e data/new ] || fail "a refused set was written"
# A folder that contains the data sets: they are no texts.
mkdir here && cp docs.jsonl here/a.jsonl && cd here
data first --from=a.jsonl >/dev/null && data second --from=. >/dev/null
cmp data/first/train.bin data/second/train.bin || fail "data sets are read as texts"
cd ..
expect 2 'made of one text; add --tokenizer=gpt2' "$STROBE" data new --from=text --special
echo ok
