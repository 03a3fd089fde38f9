#!/bin/sh
# A profile as people and programs get it: shares add up to 100 whatever the lines are, and the file lies in the run directory.
. "$(dirname "$0")/tiny.sh"
cd "$work"
export XDG_CACHE_HOME="$work/cache"

# shares: the column time_percent of a CSV table, added up where a line is nested in no other
shares() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "time_percent") share = i; else if ($i == "name") name = i }
        NR > 1 && $name !~ /^"? / { sum += $share } END { printf "%.2f", sum }' "$1"
}

expect 0 'matrix products are' "$STROBE" profile tiny.conf --out_dir=runs/a --steps=3
[ -s runs/a/profile.json ] || fail "no profile.json"
grep -q '"rows":\[{"plan":"micro"' runs/a/profile.json || fail "no rows in profile.json"
for line in kernel:step range:step family:forward layer:backward; do
    by=${line%:*} phase=${line#*:}
    "$STROBE" profile tiny.conf --out_dir=runs/a --steps=2 --by=$by --phase=$phase --csv >$by.csv
    [ "$(shares $by.csv)" = 100.00 ] || fail "--by=$by --phase=$phase: $(shares $by.csv) % in all
$(cat $by.csv)"
done
# What is shown and what is not add up, too.
expect 0 'more (--rows=0 shows all)' "$STROBE" profile tiny.conf --out_dir=runs/a --steps=2 --rows=3
expect 0 '| time % |' "$STROBE" profile tiny.conf --out_dir=runs/a --steps=2 --markdown --by=family
expect 0 '"words": [' "$STROBE" profile tiny.conf --out_dir=runs/none --steps=2 --json
[ ! -e runs/none ] || fail "--json wrote into the run directory"

expect 2 '--by=layers: kernel, op, family, layer, phase or range' "$STROBE" profile tiny.conf --by=layers
expect 2 '--phase=middle: forward, backward, update or step' "$STROBE" profile tiny.conf --phase=middle
expect 2 '--steps is 1 to' "$STROBE" profile tiny.conf --steps=0

# A run can begin where a profile lies.
expect 0 '20 iterations' "$STROBE" train tiny.conf --out_dir=runs/a --max_iters=20
[ -s runs/a/profile.json ] || fail "training removed the profile"
