#!/bin/sh
# `strobe report` on two runs: what it prints, what it refuses, and that a browser without a network
# draws every curve of the page without an error. STROBE_NO_BROWSER=1 skips the browser.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { echo "$0: $*" >&2; exit 1; }

"$here/fixture_run.sh" "$work/runs/slow" flash=false ms=180 activations=250000000
"$here/fixture_run.sh" "$work/runs/fast" flash=true ms=90
"$here/fixture_run.sh" "$work/runs/twin" flash=true ms=90 \
    # the same numbers: its curves cover the other's
"$here/fixture_run.sh" "$work/warm/slow" flash=false ms=180 watt=640
"$here/fixture_run.sh" "$work/warm/fast" ms=90 watt=560 mhz=1900
cd "$work"

# --- what it prints
"$STROBE" report runs/slow runs/fast >text 2>messages ||
    die "report failed: $(cat messages)"
grep -q 'runs/report.html' messages || die "the path of the page is not printed: $(cat messages)"
[ -s runs/report.html ] || die "no page next to the last run"
grep -q '^fast is 2\.00 times as fast as slow' text || die "no verdict in: $(cat text)"
"$STROBE" report runs/slow runs/fast --csv >table.csv 2>/dev/null || die "no CSV"
[ "$(wc -l <table.csv)" -eq 3 ] || die "the CSV has $(wc -l <table.csv) lines, not 3"
"$STROBE" report runs/fast --json >one.json 2>/dev/null
[ -s runs/fast/report.html ] || die "no page in the run"
grep -q '"tokens_per_s"' one.json || die "no numbers in the JSON"
"$STROBE" report runs/slow runs/fast --markdown --html=elsewhere.html 2>/dev/null |
    grep -q '^|---' ||
    die "no Markdown table"
[ -s elsewhere.html ] || die "--html is not followed"

# A folder of runs means all of its runs. Runs of two folders get their page here; it overwrites no
# other page.
"$STROBE" report runs --csv >all.csv 2>/dev/null || die "a folder of runs is refused"
[ "$(wc -l <all.csv)" -eq 4 ] || die "a folder of three runs gives $(wc -l <all.csv) lines"
# A page among the words is left out, as in `strobe report runs/*`.
"$STROBE" report runs/* --csv >all.csv 2>messages || die "the page stopped it: $(cat messages)"
[ "$(wc -l <all.csv)" -eq 4 ] && grep -q "runs/report.html is a page and left out" messages ||
    die "runs/*: $(cat all.csv messages)"
if "$STROBE" report runs/report.html 2>messages; then die "a page was accepted"; fi
grep -q "there are only pages" messages || die "only a page: $(cat messages)"
mkdir other && cp -r runs/twin other/twin && rm runs/report.html
"$STROBE" report runs/slow other/twin >/dev/null 2>&1 || die "runs of two folders are refused"
[ -s report.html ] && [ ! -e runs/report.html ] || die "the page of two folders is not here"
"$STROBE" report runs/slow runs/fast >/dev/null 2>&1

# --- what it refuses, each with one message
mkdir -p runs/none runs/empty runs/future
: >runs/empty/log.jsonl
echo '{"v":99,"kind":"step","iter":1}' >runs/future/log.jsonl
for case in 'runs/absent:No such file' 'runs/none:has no log.jsonl' 'runs/empty:is empty' \
    'runs/future:version 99' 'table.csv:is not a profile'; do
    if "$STROBE" report "${case%%:*}" >/dev/null 2>messages; then die "${case%%:*} was accepted"; fi
    grep -q "${case#*:}" messages || die "${case%%:*}: \"${case#*:}\" is not in: $(cat messages)"
    [ "$(grep -c . messages)" -eq 1 ] || die "${case%%:*}: more than one sentence: $(cat messages)"
done

# --- the page in a browser
. "$here/browser.sh"

# Opens a page without any name resolution and prints the resulting document.
dump() {
    chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
        --disable-component-update --disable-sync --host-resolver-rules='MAP * ~NOTFOUND' \
        --user-data-dir="$work/profile" --enable-logging=stderr --virtual-time-budget=5000 \
        --dump-dom "file://$1" 2>browser.log
}
# usage: expect PAGE CURVES CHART:CURVE,CURVE...
expect() {
    page=$1 curves=$2
    shift 2
    dump "$work/$page" >dom.html || die "$page: the browser failed: $(tail -3 browser.log)"
    grep -q 'data-ready="true"' dom.html ||
        die "$page: its script did not end: $(grep CONSOLE browser.log)"
    grep -q 'data-errors="0"' dom.html || die "$page: errors: $(grep CONSOLE browser.log)"
    if grep CONSOLE browser.log; then die "$page: the browser complains"; fi
    grep -q "data-curves=\"$curves\"" dom.html ||
        die "$page: not $curves curves were drawn: $(grep -o '<body[^>]*>' dom.html)"
    for chart in "$@"; do
        drawn=$(echo "${chart#*:}" | tr , ' ')
        grep -q "id=\"${chart%%:*}\"[^>]*data-drawn=\"$drawn\"" dom.html ||
            die "$page: ${chart%%:*}: not \"$drawn\": $(grep -o '<div class="chart[^>]*>' dom.html)"
    done
}
expect runs/report.html 9 loss:0.logged,1.logged,0.train,1.train,0.val,1.val \
    difference:1.difference step-time:0.ms,1.ms
expect runs/fast/report.html 4 loss:0.logged,0.train,0.val step-time:0.ms
"$STROBE" report runs/slow runs/fast runs/twin >/dev/null 2>&1
expect runs/report.html 14 loss:0.logged,1.logged,2.logged,0.train,1.train,2.train,0.val,1.val,2.val
# Telemetry of the runs that have it; a throttled clock gives a note.
cp -r runs/twin warm/twin
"$STROBE" report warm/slow warm/fast warm/twin >text 2>/dev/null
grep -q '^slow .* 98 % .* 25\.3 % ' text || die "busy and slowed are not in: $(cat text)"
grep -q '^Note: fast ran at a clock [45] % lower than slow' text ||
    die "no note of the clock in: $(cat text)"
expect warm/report.html 24 gauge-utilization:0.utilization,1.utilization \
    gauge-clock_mhz:0.clock_mhz,1.clock_mhz gauge-throttled:0.throttled,1.throttled \
    gauge-power_w:0.power_w,1.power_w gauge-memory_bytes:0.memory_bytes,1.memory_bytes
# The same in iterations without evaluations, and with a loss that is not a number.
grep -v eval runs/slow/log.jsonl | sed '200s/"loss":[0-9.]*/"loss":null/' >log &&
    mv log runs/slow/log.jsonl
"$STROBE" report runs/slow runs/fast >/dev/null 2>&1
expect runs/report.html 7 loss:0.logged,1.logged,0.train,1.train,1.val step-time:0.ms,1.ms
grep -q 'A loss is not a number, marked by a cross, at iteration 200\.' dom.html ||
    die "the loss that is not a number: $(grep -o 'class="hint outside"[^/]*' dom.html)"

# --- what the charts show of extremes; report_charts.js looks at each page and says what is wrong
looks() {
    with_script "$1" "$here/report_charts.js" >"$work/look.html"
    sed -i "s|<body|<body data-case=\"$2\"|" "$work/look.html"
    dump "$work/look.html" >dom.html || die "$1: the browser failed: $(tail -3 browser.log)"
    grep -q 'data-wrong=""' dom.html ||
        die "$1: $(grep -o 'data-wrong="[^"]*"' dom.html) $(grep CONSOLE browser.log)"
}
fixture() { "$here/fixture_run.sh" "$@" && rm "$1/summary.json"; }
change() { sed "$2" "$1/log.jsonl" >log && mv log "$1/log.jsonl"; }
# Steps of 0.8 ms and, 45 of 100 times, of 20 ms.
fixture groups iters=100 ms=1
change groups 's/"ms":[0-9.]*/"ms":0.8/; /"iter":[0-9]*[13579],/s/"ms":0.8/"ms":20/'
# One loss of 80 in a long run, one of 1e-6, and one that is NaN.
fixture spike iters=15000
change spike '/step","iter":7000,/s/"loss":[0-9.]*/"loss":80/
    /step","iter":9000,/s/"loss":[0-9.]*/"loss":null/
    /step","iter":15000,/s/"loss":[0-9.]*/"loss":0.0000012345/'
# The same losses in a run and in one ten times as long.
fixture lengths/long iters=3000
fixture lengths/short iters=3000
grep -v '"iter":[0-9]\{4\}' lengths/short/log.jsonl | grep -v '"iter":[3-9][0-9][0-9],' >log
mv log lengths/short/log.jsonl
# Steps of one run are of four times as many tokens.
fixture tokens/few && fixture tokens/more
sed 's/"tokens_per_step":768/"tokens_per_step":3072/' tokens/few/plan.json >plan
mv plan tokens/few/plan.json
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    fixture "many/r$i" iters=70 seed="$i" watt=300
done
for case in groups spike lengths tokens many; do
    "$STROBE" report "$case" --html="$case.html" >/dev/null 2>&1 || die "no report of $case"
    looks "$case.html" "$case"
done
