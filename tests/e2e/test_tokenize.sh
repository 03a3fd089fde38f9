#!/bin/sh
# strobe tokenize and detokenize: words, lines of JSON and raw ids; the same for any number of
# threads and any cut; the worst texts take no longer than others; errors say where.
. "$(dirname "$0")/tiny.sh"
tokenizer=$PWD/tests/tokenizer
cd "$work"
tokenize() { "$STROBE" tokenize --tokenizer="$tokenizer" "$@"; }
detokenize() { "$STROBE" detokenize --tokenizer="$tokenizer" "$@"; }

[ "$(printf 'the dog' | tokenize)" = "257 261" ] || fail "words"
[ "$(printf '257, 261\n' | detokenize)" = "the dog" ] || fail "words back"
printf '{"text": "the dog", "more": 1}\n\n{"text": ""}\n{"text": "\\u0000a"}\n' >lines
tokenize --jsonl lines >ids
printf '{"ids": [257, 261]}\n{"ids": []}\n{"ids": [188, 64]}\n' | cmp - ids || fail "JSON"
printf '{"text":"the dog"}\n{"text":""}\n{"text":"\\u0000a"}\n' >expected
detokenize --jsonl ids | cmp - expected || fail "JSON back"
printf 'the dog' | tokenize --raw | od -An -tu2 | grep -q '257 *261' || fail "raw"
[ "$(printf 'a<|endoftext|>' | tokenize --special)" = "64 266" ] || fail "special"
[ "$(printf '{"ids": [188, 227, 97]}' | detokenize --jsonl | head -c 3)" = '{"t' ] || fail "parts"
: >empty
[ "$(tokenize empty)" = "" ] && [ "$(tokenize --raw empty | wc -c)" = 0 ] || fail "empty text"

# 5 MB of words, blanks and bytes: threads and units change nothing, and all bytes come back.
head -c 2000000 /dev/urandom >noise
{ i=0; while [ $i -lt 40 ]; do cat text; i=$((i + 1)); done; cat noise; } >much
head -c 3000000 /dev/zero | tr '\0' 'a' >>much
OMP_NUM_THREADS=1 tokenize --raw much >one
OMP_NUM_THREADS=7 tokenize --raw much >seven 2>/dev/null
cmp one seven || fail "the number of threads changes ids"
detokenize --raw one | cmp - much || fail "other bytes come back"
tokenize <much | tr ' ' '\n' | head -n 100000 >words
od -An -v -tu2 -w2 one | tr -d ' ' | head -n 100000 | cmp - words || fail "words are other ids"

# The ladder of encoders: every rung gives the same ids, and its file can be read.
"$STROBE" lab bpe --tokenizer="$tokenizer" --from=text --samples=1 --csv --svg=b.svg >out
[ "$(grep -c ',"' out)" -ge 1 ] && [ "$(wc -l <out)" = 9 ] || fail "rungs: $(cat out)"
grep -q '<svg' b.svg || fail "no picture"
"$STROBE" lab bpe --show=masks | grep -q '03_masks.c' || fail "--show"
expect 2 'bpe has no rung mask; it has pattern, classes, masks' "$STROBE" lab bpe --show=mask

# A signal ends the wait for a text.
mkfifo silent
exec 3<>silent
"$STROBE" tokenize --tokenizer="$tokenizer" <silent 3>&- >out 2>&1 &
waiting=$!
sleep 0.5
kill -TERM $waiting
code=0
wait $waiting || code=$?
[ $code = 130 ] || fail "SIGTERM: exit code $code: $(cat out)"

printf '{"text": "a"}\nnonsense\n' >bad
expect 1 'bad: line 2 is not JSON' "$STROBE" tokenize --tokenizer="$tokenizer" --jsonl bad
printf '{"text": 5}\n' >bad
expect 1 'bad: line 1: there is no text in "text"' \
    "$STROBE" tokenize --tokenizer="$tokenizer" --jsonl bad
printf '257 dog' >bad
expect 1 'bad: "dog" is not an id' "$STROBE" detokenize --tokenizer="$tokenizer" bad
printf '257 270' >bad
expect 1 'bad: 270 is not an id of the vocabulary, which has 0 to 269' \
    "$STROBE" detokenize --tokenizer="$tokenizer" bad
printf 'abc' >bad
expect 1 'bad: the length is not a multiple of 2 bytes' \
    "$STROBE" detokenize --tokenizer="$tokenizer" --raw bad
expect 2 'no tokenizer given: add --tokenizer=gpt2' "$STROBE" tokenize text
expect 2 'choose one of --jsonl and --raw' \
    "$STROBE" tokenize --tokenizer="$tokenizer" --jsonl --raw text
expect 1 'none: No such file' "$STROBE" tokenize --tokenizer="$tokenizer" none
expect 1 'none: no such file or folder' "$STROBE" tokenize --tokenizer=none text
echo ok
