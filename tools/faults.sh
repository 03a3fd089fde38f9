#!/bin/sh
# `make faults`: every mode of tests/faults in full, and a summary for docs/log/reliability.md.
# usage: faults.sh BUILD [OPTION...]     MODES: some of calls, cuts, kills and pairs
set -u
build=$1
shift
export STROBE="$PWD/$build/strobe"
log=$build/faults/log.txt
failed=0
: >"$log"
for mode in ${MODES:-calls cuts kills pairs}; do
    : >"$build/faults/$mode.txt"
    "$build/faults/faults" "$mode" "$@" >>"$build/faults/$mode.txt" 2>&1 &
    child=$!
    trap 'kill $child; exit 130' INT TERM
    tail -n +1 -f --pid=$child "$build/faults/$mode.txt"
    wait $child || failed=1
    cat "$build/faults/$mode.txt" >>"$log"
done
echo
grep -hE '^(calls|cuts|kills|pairs): ' "$log"
echo "all failures: $log"
exit $failed
