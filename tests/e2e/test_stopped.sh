#!/bin/sh
# Ctrl-C while a command measures: it prints what it has and exits with 130; and `strobe ladder`
# says what it will do before it runs rungs for long.
# test: alone; it interrupts measurements after a while
. "$(dirname "$0")/tiny.sh"
cd "$work"
export XDG_CACHE_HOME=$work/cache STROBE_LOG=info
# stop_after SECONDS COMMAND...
stop_after() {
    seconds=$1
    shift
    timeout --foreground 100 "$@" >out 2>log & # else it sends the signal twice
    child=$!
    sleep "$seconds"
    kill -INT $child
    code=0
    wait $child || code=$?
    [ $code = 130 ] || fail "exit code $code instead of 130: $* $(cat out log)"
    grep -q 'strobe: .*stopped' log || fail "no sentence: $* $(cat log)"
}

# --- the peaks are measured first if they are not known
stop_after 1 "$STROBE" machine --device=cpu --threads=1
stop_after 0.5 "$STROBE" ladder tiny.conf --device=cpu
grep -q 'stopped while the peaks of this machine were measured; nothing was stored' log ||
    fail "the peaks: $(cat log)"
[ ! -e cache/strobe/machine.json ] || fail "half a measurement is stored"

# --- the tables of what was measured; peaks that are known, and a few seconds of work announced
"$STROBE" machine --device=cpu --threads=1 --quick >/dev/null 2>log || fail "$(cat log)"
stop_after 4 "$STROBE" ladder tiny.conf --device=cpu --steps=100000
grep -q '^full fusion  *--fusion=full  *[0-9]' out || fail "no table of the ladder: $(cat out)"
grep -q '^batch_size=4: 6 rungs, in turn; together they need .* of .* free' log ||
    fail "no batch: $(cat log)"
grep -q '^expected duration: about .*; Ctrl-C stops' log || fail "no duration: $(cat log)"
stop_after 4 "$STROBE" bench tiny.conf --device=cpu --steps=1000000
grep -q 'matmuls' out || fail "no table of the step: $(cat out)"
stop_after 3 "$STROBE" lab memory --device=cpu --threads=1 --limit=30
grep -q '^L1 ' out && grep -q 'latency: pointer chase' out || fail "no table of the memory"
stop_after 3 "$STROBE" lab products --device=cpu --size=2048x2048x2048
grep -q '^fp32 ' out || fail "no table of products: $(cat out)"
echo ok
