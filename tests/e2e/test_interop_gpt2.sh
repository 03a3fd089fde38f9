#!/bin/sh
# transformers opens what Strobe writes, and Strobe what transformers writes: the same bits and
# logits; the script that says so sees a wrong byte. PyTorch and Strobe hand over a training as
# nanoGPT's ckpt.pt. A part of `make check-interop`.
# test: release; it needs packages of Python
. "$(dirname "$0")/tiny.sh"
[ -f build/interop-gpt2/packages ] || {
    echo "skipped: PyTorch and transformers are not installed (make check-interop)"
    exit 77
}
tools/check_interop.sh gpt2 --strobe="$STROBE" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
sed 's/^/  /' "$work/log"
tools/check_interop.sh nanogpt --strobe="$STROBE" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
sed 's/^/  /' "$work/log"

# A program whose exported weights differ in one byte.
cat >"$work/wrong" <<EOF
#!/bin/sh
"$STROBE" "\$@" || exit
for last; do :; done
[ \$1 = export ] || exit 0
file=\${last#--out=}/model.safetensors
printf x | dd of="\$file" bs=1 seek=\$((\$(stat -c %s "\$file") - 2)) conv=notrunc 2>/dev/null
EOF
chmod +x "$work/wrong"
if tools/check_interop.sh gpt2 --strobe="$work/wrong" >"$work/log" 2>&1; then
    fail "a wrong weight is not seen: $(cat "$work/log")"
fi
grep -q 'OTHER BITS' "$work/log" || fail "$(cat "$work/log")"
echo ok
