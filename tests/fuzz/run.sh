#!/bin/sh
# Runs the fuzz targets of build/fuzz, several at once, and prints what each executed.
# usage: run.sh SECONDS [NAME...]      NAME: the targets to run; default: all
#   FUZZ_JOBS=N     as many at once as there are processors without it
#   FUZZ_KEEP=DIR   inputs that reach new code are kept there, for the next run
# Fails if a target found something, reads none of its seeds or does not exist, or if no input was
# run. The input that broke something is in build/fuzz/found.
set -eu
cd "$(dirname "$0")/../.."
build=$PWD/build/fuzz seconds=${1:?usage: run.sh SECONDS [NAME...]}
shift
all=$(ls tests/fuzz/fuzz_*.c | sed 's,.*/fuzz_,,; s,\.c$,,')
[ $# -gt 0 ] || set -- $all
for name in "$@"; do
    [ -f "tests/fuzz/fuzz_$name.c" ] || {
        echo "$0: there is no target $name; the targets are:" $all >&2
        exit 2
    }
done
if grep -q fuzzer-no-link "$build/flags"; then
    echo "inputs by libFuzzer, which keeps those that reach new code"
else
    echo "inputs by simple mutations (tests/fuzz/driver.c); tools/install_deps.sh --fuzz installs" \
        "libFuzzer, which finds more"
fi
work=$(mktemp -d) found=$build/found
trap 'rm -rf "$work"' EXIT
mkdir -p "$found"
export build seconds found
export work="$work" keep="${FUZZ_KEEP:-$work/corpus}"
export ASAN_OPTIONS="allocator_may_return_null=1:${ASAN_OPTIONS-}" STROBE_LOG=error

one='name=$1
[ -x "$build/$name" ] || exit 0
mkdir -p "$keep/$name"
code=0
"$build/$name" -max_total_time="$seconds" -print_final_stats=1 -timeout=20 -rss_limit_mb=2048 \
    -artifact_prefix="$found/$name-" "$keep/$name" "tests/fuzz/corpus/$name" \
    >"$work/$name.log" 2>&1 || code=$?
n=$(sed -n "s/.*stat::number_of_executed_units: *//p" "$work/$name.log")
valid=$(sed -n "s/^\([0-9]*\) of [0-9]* inputs were valid/\1/p" "$work/$name.log")
echo "$name $code ${n:-0} ${valid:-0}" >"$work/$name.end"'
printf '%s\n' "$@" | xargs -P "${FUZZ_JOBS:-$(nproc)}" -I NAME sh -c "$one" NAME NAME

bad=0 total=0
for name in "$@"; do
    if [ ! -f "$work/$name.end" ]; then
        echo "  --    $name is not built on this machine"
        continue
    fi
    read -r _ code n valid <"$work/$name.end"
    total=$((total + n))
    if [ "$code" != 0 ]; then
        bad=$((bad + 1))
        echo "  FAIL  $name: exit code $code"
        tail -n 60 "$work/$name.log"
    elif [ "$valid" = 0 ]; then
        bad=$((bad + 1))
        echo "  FAIL  $name: none of $n inputs was valid, so its reader is not reached"
    else
        printf '  ok    %-14s %10d inputs, of which %d valid\n' "$name" "$n" "$valid"
    fi
done
echo "$total inputs in $seconds s for each target; $bad targets found something"
[ "$total" -gt 0 ] || echo "$0: no input was run; build the targets with \`make fuzz-programs\`" >&2
[ "$bad" = 0 ] && [ "$total" -gt 0 ]
