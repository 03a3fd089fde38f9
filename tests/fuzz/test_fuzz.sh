#!/bin/sh
# Every fuzz target: its corpus, where past findings are kept, then a few seconds of new inputs.
# test: slow release; it builds its own programs with sanitizers
set -eu
if [ -z "$(ls build/fuzz 2>/dev/null | grep -v -e found -e corpus)" ]; then
    echo 'skipped: the fuzz targets are not built (make fuzz-programs)'
    exit 77
fi
fail() { echo "FAIL: $*" >&2; exit 1; }
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Seeds are valid no matter who can write the working directory.
chmod 777 "$work"
for name in kernel_cache machine; do
    [ -x "build/fuzz/$name" ] || continue
    (cd "$work" && "$root/build/fuzz/$name" "$root/tests/fuzz/corpus/$name"/*) >"$work/log" 2>&1 ||
        fail "$name: $(cat "$work/log")"
    grep -q '^[1-9][0-9]* of [0-9]* inputs were valid' "$work/log" ||
        fail "$name takes no seed in a folder that others can write: $(cat "$work/log")"
done

# Nothing is run: not a success.
if sh tests/fuzz/run.sh 1 misspelt >"$work/log" 2>&1; then fail "a misspelt target was accepted"; fi
grep -q 'there is no target misspelt' "$work/log" || fail "$(cat "$work/log")"

FUZZ_JOBS=2 sh tests/fuzz/run.sh 4
