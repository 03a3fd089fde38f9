#!/bin/sh
# The plans of the laptop configuration must match the stored ones word for word. A change of graph,
# passes or planner shows here first. UPDATE=1 rewrites them: then read the difference. The backend
# `null` is the same on all machines: it has one kernel for each operator and needs no scratch.
set -eu
here=$(dirname "$0")
plans=$here/../plans
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

for flash in false true; do
    name=shakespeare_char_cpu.$([ $flash = true ] && echo flash || echo slow).txt
    "$STROBE" plan configs/shakespeare_char_cpu.conf --flash=$flash --vocab=65 --dtype=float32 \
        --backend=null >"$work/$name"
    if [ "${UPDATE:-0}" = 1 ]; then
        cp "$work/$name" "$plans/$name"
    elif ! diff -u "$plans/$name" "$work/$name"; then
        echo "$name differs; if that is intended: UPDATE=1 make test T=snapshots"
        failed=1
    fi
done
exit $failed
