#!/bin/sh
# `strobe report` on profiles: what it prints, what it refuses, and that in a browser without a
# network every table sorts and filters, the timeline zooms and names what is under the mouse, and
# there are no errors. STROBE_NO_BROWSER=1 skips the browser.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { echo "$0: $*" >&2; exit 1; }

cd "$work"
mkdir -p runs/slow runs/flash other
"$here/fixture_profile.sh" runs/slow/profile.json flash=false counters=true launches=true
"$here/fixture_profile.sh" runs/flash/profile.json
"$here/fixture_run.sh" runs/trained flash=true
"$here/fixture_profile.sh" runs/trained/profile.json dropped=17 memory=false
cp runs/flash/profile.json other/alone.json

# --- what it prints
"$STROBE" report runs/slow runs/flash --svg=roof.svg >text 2>messages ||
    die "report failed: $(cat messages)"
grep -q 'runs/report.html' messages || die "the path of the page is not printed: $(cat messages)"
[ -s runs/report.html ] || die "no page next to the profiles"
grep -q '^slow: a step takes 45.627 ms on average' text || die "no step in: $(cat text)"
grep -q '^vanished .*forward / block / attention / softmax .*-3.960' text ||
    die "softmax is not listed as vanished in: $(cat text)"
grep -q '^came .*forward / block / attention / flash attention .*+1.572' text ||
    die "flash attention is not listed as new in: $(cat text)"
grep -q '^ .* step  *45.627  *28.851  *-16.776' text || die "no sum in: $(cat text)"
"$STROBE" report runs/slow runs/flash --json 2>/dev/null | grep -q '"ms_difference": -3.96' ||
    die "no changes in the JSON"
"$STROBE" report runs/slow runs/flash --json 2>/dev/null | grep -q '"step_ms_mean": 45.62' ||
    die "no profiles in the JSON"
[ "$("$STROBE" report runs/slow runs/slow 2>/dev/null | grep -c 'ms on average')" = 1 ] ||
    die "a run that is named twice is listed twice"
"$STROBE" report runs/slow runs/flash --markdown 2>/dev/null | grep -q '^| vanished' ||
    die "no changes in Markdown"
"$STROBE" report other/alone.json >text 2>messages || die "a profile is refused: $(cat messages)"
grep -q '^alone: a step takes' text || die "the profile has not its file's name: $(cat text)"
[ -s other/report.html ] || die "no page next to the profile"
"$STROBE" report runs/trained >text 2>&1 || die "a run with a profile is refused: $(cat text)"
grep -q '17 device activities were dropped' text ||
    die "the dropped activities are not reported: $(cat text)"
[ ! -e runs/flash/report.html ] || die "a page in a folder that was not requested"
[ "$(grep -c '<circle' roof.svg)" -gt 30 ] ||
    die "the roofline has $(grep -c '<circle' roof.svg) circles"
grep -q 'bf16 800 TFLOP/s' roof.svg || die "the roofline has no ceiling"
grep -q 'measured 2026-11-20' roof.svg || die "the roofline lacks the date of its ceilings"

# --- what it refuses, each with one message
mkdir -p bad/future bad/none
sed 's/{"v":1,/{"v":99,/' runs/flash/profile.json >bad/future/profile.json
echo '{"v":1}' >bad/none/profile.json
mkdir -p bad/cut bad/empty
head -c 3000 runs/flash/profile.json >bad/cut/profile.json
"$here/fixture_run.sh" bad/run
for case in 'bad/cut:is not valid JSON (line ' \
    'bad/empty:has no log.jsonl, profile.json or bench.json' 'bad/future:version 99' \
    'bad/none:is not a profile' 'roof.svg:is not a profile' \
    'bad/run --svg=x.svg:needs a profile, and there is none'; do
    # shellcheck disable=SC2086
    if "$STROBE" report ${case%%:*} >/dev/null 2>messages; then die "${case%%:*} was accepted"; fi
    grep -q "${case#*:}" messages || die "${case%%:*}: \"${case#*:}\" is not in: $(cat messages)"
    [ "$(grep -c . messages)" -eq 1 ] || die "${case%%:*}: more than one sentence: $(cat messages)"
done

# --- the page in a browser
. "$here/browser.sh"

# usage: act PAGE SIZE LEAST [brief]: opens the page in a window of that size and performs at least
# LEAST user actions
act() {
    with_script "$1" "$here/report_actions.js" >acted.html
    [ -z "${4-}" ] || sed -i 's/<body>/<body data-brief="true">/' acted.html
    [ "$1" != runs/report.html ] || sed -i 's/<body/<body data-counters="true"/' acted.html
    grep -q '"memory":{"parts"' "$1" || sed -i 's/<body/<body data-memory="none"/' acted.html
    chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
        --disable-component-update --disable-sync --host-resolver-rules='MAP * ~NOTFOUND' \
        --user-data-dir="$work/profile" --enable-logging=stderr --virtual-time-budget=20000 \
        --window-size="$2" --dump-dom "file://$work/acted.html" >dom.html 2>browser.log ||
        die "$1: the browser failed: $(tail -3 browser.log)"
    if grep CONSOLE browser.log; then die "$1: the browser complains"; fi
    body=$(grep -o '<body[^>]*>' dom.html)
    case $body in *'data-ready="true"'*) ;; *) die "$1: its script did not end: $body" ;; esac
    case $body in *'data-errors="0"'*) ;; *) die "$1: errors: $body" ;; esac
    case $body in *'data-failed=""'*) ;; *) die "$1 at $2: $body" ;; esac
    n=$(echo "$body" | sed 's/.*data-tried="\([0-9]*\)".*/\1/')
    [ "$n" -ge "$3" ] || die "$1: only $n things were tried"
}
act runs/report.html 1400,900 300
act runs/report.html 420,800 150 brief
act runs/trained/report.html 1400,900 100 brief
act other/report.html 1400,900 100 brief

# A run without a profile and a profile without rows also have a page, without any part of a
# profile.
rm runs/trained/profile.json
"$STROBE" report runs/trained >/dev/null 2>&1
act runs/trained/report.html 1400,900 0
echo '{"v":1,"rows":[]}' >other/alone.json
"$STROBE" report other/alone.json >/dev/null 2>&1 || die "a profile without rows is refused"
act other/report.html 1400,900 0
