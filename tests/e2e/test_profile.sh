#!/bin/sh
# A profile as a user and a script see it: shares add up to 100 for every kind of line, and the file
# is in the run directory.
. "$(dirname "$0")/tiny.sh"
cd "$work"
export XDG_CACHE_HOME="$work/cache"

# shares: the sum of the column time_percent of a CSV table over the lines that are not nested in
# another
shares() {
    awk -F, 'NR == 1 {
            for (i = 1; i <= NF; i++) if ($i == "time_percent") share = i
            for (i = 1; i <= NF; i++) if ($i == "name") name = i
        }
        NR > 1 && $name !~ /^"? / { sum += $share } END { printf "%.2f", sum }' "$1"
}

expect 0 'matmuls take' "$STROBE" profile tiny.conf --out_dir=runs/a --steps=3
[ -s runs/a/profile.json ] || fail "no profile.json"
grep -q '"rows":\[{"plan":"micro"' runs/a/profile.json || fail "no rows in profile.json"
for line in kernel:step range:step family:forward layer:backward; do
    by=${line%:*} phase=${line#*:}
    "$STROBE" profile tiny.conf --out_dir=runs/a --steps=2 --by=$by --phase=$phase --csv >$by.csv
    [ "$(shares $by.csv)" = 100.00 ] || fail "--by=$by --phase=$phase: $(shares $by.csv) % in total
$(cat $by.csv)"
done
# A kernel that is bound by latency has no ratio to its lower bound.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["bound"] == "latency" { n++; if ($at["times_floor"] != "") exit 1 }
    END { if (!n) exit 1 }' kernel.csv || fail "a ratio to a floor of latency: $(cat kernel.csv)"
# Shown and hidden lines together add up as well.
expect 0 'more (--rows=0 shows all)' "$STROBE" profile tiny.conf --out_dir=runs/a --steps=2 --rows=3
expect 0 '| time % |' "$STROBE" profile tiny.conf --out_dir=runs/a --steps=2 --markdown --by=family
expect 0 'no hardware counters: the cpu backend has none; --counters needs an NVIDIA GPU' \
    "$STROBE" profile tiny.conf --out_dir=runs/none --steps=2 --json --counters
grep -q '"words": \[' out || fail "no words: $(cat out)"
[ ! -e runs/none ] || fail "--json wrote into the run directory"

# --- several values of a key: profiled in turns, then compared
expect 2 '--csv is for one profile' "$STROBE" profile tiny.conf --flash=false,true --csv
expect 0 'in 12 turns' "$STROBE" profile tiny.conf --flash=false,true --steps=12 --trace-steps=0 \
    --out_dir=runs/both
grep -q '^vanished .*softmax' out || fail "no changes: $(cat out)"
grep -q 'flash=true is .* as flash=false\|flash=true cannot be told apart in speed from' out ||
    fail "no verdict: $(cat out)"
of=$(sed -n 's/.*"chunks":{"of":\([0-9]*\),.*/\1/p' runs/both/*/profile.json | sort -u)
[ "$(echo "$of" | wc -w)" = 1 ] || fail "the variants did not take turns with each other: $of"
[ -s runs/both/report.html ] || fail "no page of both profiles"
expect 0 'has the same plan as' "$STROBE" profile tiny.conf --learning_rate=1e-2,2e-2 --steps=3 \
    --trace-steps=0 --out_dir=runs/equal --json
grep -q '"changes": ' out || fail "--json has no changes: $(cat out)"
expect 2 'flash must be one of' "$STROBE" profile tiny.conf --flash=false,maybe --out_dir=runs/both

# --- the trace next to it: compressed if the program was built with zlib
trace="${STROBE_BUILD:-$PWD/build/release}/tests/profile/test_trace_file"
# plain: the trace as JSON, in the file `trace`
plain() {
    if [ -e "$1/trace.json.gz" ]; then gzip -dc "$1/trace.json.gz" >trace; else
        cat "$1/trace.json" >trace
    fi
}
expect 0 'trace.json' "$STROBE" profile tiny.conf --out_dir=runs/traced --steps=3 --trace-steps=2
grep -q ': 2 steps, [0-9]* events' out || fail "the trace's steps are not printed: $(cat out)"
plain runs/traced
expect 0 'host 6,' "$trace" trace
kernels=$(grep -o '"kernels_per_step":[0-9]*' runs/traced/profile.json | cut -d: -f2)
expect 0 "kernels $((2 * kernels)), copies 0" "$trace" trace
expect 0 'more would exceed the limit of 1.0 MiB' "$STROBE" profile tiny.conf \
    --out_dir=runs/traced --steps=20 --trace-steps=20 --trace-limit=1
plain runs/traced
[ "$(wc -c <trace)" -le 1048576 ] || fail "the trace is larger than its limit: $(wc -c <trace)"
expect 0 'kernels ' "$trace" trace
expect 0 'profile.json' "$STROBE" profile tiny.conf --out_dir=runs/untraced --steps=2 \
    --trace-steps=0
[ ! -e runs/untraced/trace.json ] && [ ! -e runs/untraced/trace.json.gz ] ||
    fail "--trace-steps=0 wrote a trace"
expect 2 '--trace-limit must be 1 to' "$STROBE" profile tiny.conf --trace-limit=0

expect 2 '--by must be kernel, op, family, layer, phase or range; found layers' \
    "$STROBE" profile tiny.conf --by=layers
expect 2 '--phase must be forward, backward, update or step; found middle' \
    "$STROBE" profile tiny.conf --phase=middle
expect 2 '--steps must be 1 to 100000; found 0' "$STROBE" profile tiny.conf --steps=0
expect 2 '--limit must be 0 to' "$STROBE" profile tiny.conf --limit=-1

# The output path is checked before anything is measured.
: >blocked
expect 1 'the profile cannot be written to out_dir' "$STROBE" profile tiny.conf \
    --out_dir=blocked/a --steps=1

# A run can begin in a directory with a profile.
expect 0 '20 iterations' "$STROBE" train tiny.conf --out_dir=runs/a --max_iters=20
[ -s runs/a/profile.json ] || fail "training removed the profile"
