#!/bin/sh
# strobe tokenize gives the ids of tiktoken and of Hugging Face's tokenizers on random texts and
# code points; the script that says so sees one wrong id. A part of `make check-interop`, which
# installs the two.
# test: release; it needs packages of Python
. "$(dirname "$0")/tiny.sh"
skip() { echo "skipped: $*"; exit 77; }
vocabulary=${STROBE_GPT2:-../shared/data/gpt2}
[ -f build/interop/packages ] ||
    skip "tiktoken and tokenizers are not installed (make check-interop)"
[ -f "$vocabulary/vocab.json" ] && [ -f "$vocabulary/merges.txt" ] ||
    skip "there is no vocabulary of GPT-2 (STROBE_GPT2)"
compare() { tools/check_interop.sh tokenizer --code-points=50000 --texts="$@" >"$work/log" 2>&1; }

compare 2000 --strobe="$STROBE" || fail "$(cat "$work/log")"
[ "$(grep -c '2782 of 2782 texts' "$work/log")" = 3 ] || fail "$(cat "$work/log")"
sed 's/^/  /' "$work/log"

# A program that is wrong about one text.
cat >"$work/wrong" <<EOF
#!/bin/sh
"$STROBE" "\$@" | { [ \$1 = tokenize ] && sed '7s/\[/[0, /' || cat; }
EOF
chmod +x "$work/wrong"
if compare 20 --strobe="$work/wrong"; then fail "a wrong id is not seen: $(cat "$work/log")"; fi
grep -q 'tiktoken.* 801 of 802 texts have equal ids' "$work/log" || fail "$(cat "$work/log")"

if STROBE_GPT2=$work/none tools/check_interop.sh tokenizer >"$work/log" 2>&1; then
    fail "no vocabulary"
fi
grep -q 'none has no vocab.json; set STROBE_GPT2' "$work/log" || fail "$(cat "$work/log")"
echo ok
