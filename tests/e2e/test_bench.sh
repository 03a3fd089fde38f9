#!/bin/sh
# `strobe bench`: a grid, what it refuses before it runs, a suite at a tiny size, and the results in
# `strobe report` and in a browser. STROBE_NO_BROWSER=1 skips the browser.
# test: alone slow; it interrupts a measurement after 3 s
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tiny.sh"
cd "$work"
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME STROBE_LOG=info
tiny="--device=cpu --threads=1 --n_layer=1 --n_head=2 --n_embd=16"

# --- a grid: two configurations, two types, each with its lines
sed 's/n_layer = 2/n_layer = 1/' tiny.conf >flat.conf
expect 0 'backward, by difference' "$STROBE" bench tiny.conf flat.conf --dtype=float32,bfloat16 \
    --device=cpu --steps=2 --warmup=1 --phase=forward,backward,step --out_dir=grid
for words in 'forward + backward' 'The cells were interleaved' 'x first' 'flat' \
    'wrote grid/bench.json; see it as a page with strobe report grid'; do
    grep -qF "$words" out || fail "no '$words' in: $(cat out)"
done
"$STROBE" bench tiny.conf flat.conf --dtype=float32,bfloat16 --device=cpu --steps=2 --warmup=1 \
    --phase=forward,backward,step --csv --save=grid.json 2>log >grid.csv
[ "$(wc -l <grid.csv)" -eq $((1 + 4 * 5)) ] ||
    fail "the CSV has $(wc -l <grid.csv) lines: $(cat grid.csv)"
[ -s grid.json ] || fail "--save is ignored"
expect 0 '| tiny | float32 | step |' "$STROBE" bench tiny.conf --dtype=float32,bfloat16 \
    --phase=step --device=cpu --steps=1 --warmup=1 --markdown --out_dir=grid
expect 0 '"note": null' "$STROBE" bench tiny.conf --phase=step --device=cpu --steps=1 --warmup=1 \
    --json
[ ! -e runs/bench ] || fail "--json alone writes a file"
expect 0 '| tiny | step |' "$STROBE" bench tiny.conf --phase=step --device=cpu --steps=1 \
    --warmup=1 --markdown "--out_dir=it's here"
eval "set -- $(sed -n 's/^ "command": "\(.*\)",*$/\1/p' "it's here/bench.json" | sed 's/\\\\/\\/g')"
options="--phase=step --device=cpu --steps=1 --warmup=1 --markdown --out_dir=it's here"
[ "$*" = "strobe bench tiny.conf $options" ] || fail "the recorded command is $*"
[ $# -eq 9 ] || fail "the recorded command has $# words"
grep -q '^ "commit": "[0-9a-f]\{7,\}' "it's here/bench.json" ||
    fail "no commit in: $(head -12 "it's here/bench.json")"
expect 0 '"note": null' "$STROBE" bench tiny.conf --phase=step --device=cpu --steps=1 --warmup=1 \
    --json --out_dir=json
[ -s json/bench.json ] || fail "--out_dir is ignored with --json"
expect 0 'one after the other, each once' "$STROBE" bench tiny.conf --dtype=float32,bfloat16 \
    --phase=step --device=cpu --steps=1 --warmup=1 --order=twice --out_dir=grid
expect 0 'the last cell ran only once' "$STROBE" bench tiny.conf --dtype=float32,bfloat16 \
    --phase=step --device=cpu --steps=2 --warmup=1 --order=twice --out_dir=grid

# --- a cell that does not fit reports what it would need, and the others run
expect 0 'of memory, the limit is 2.0 MiB' "$STROBE" bench tiny.conf --block_size=16,2048 \
    --flash=false --phase=forward --steps=1 --warmup=1 --device=cpu --mem-limit=2MiB --out_dir=grid
grep -q '^tiny  *16  *forward ' out || fail "the cell that fits did not run: $(cat out)"

# --- if no cell ran, the table is printed all the same, with a message and a nonzero exit code
nothing() { # WHY COMMAND...
    why=$1
    shift
    expect 1 "strobe: nothing was measured; reason of the first cell: $why" "$STROBE" bench "$@" \
        --device=cpu
}
nothing 'needs' tiny.conf --flash=false,true --phase=step --steps=1 --warmup=1 --mem-limit=1KiB \
    --out_dir=nothing
[ "$(grep -c '^tiny .* the limit is 1' out)" -eq 2 ] || fail "no rows with the reason: $(cat out)"
[ -s nothing/bench.json ] || fail "the result is not saved"
nothing 'needs' --suite=cs336-attention --block_size=16 --n_embd=16 --steps=1 --mem-limit=1KiB \
    --out_dir=nothing
nothing 'needs' --suite=cs336-warmup --size=d128 --n_layer=1 --block_size=8 --steps=1 --warmup=0,1 \
    --phase=step --mem-limit=1KiB --rounds=1 --out_dir=nothing
[ "$(grep -c '^d128 ' out)" -ge 2 ] || fail "no row for each warm-up: $(cat out)"

# --- Ctrl-C: the table of what was measured until then, and a note
stop_it() { # NAME OPTIONS...: stops it after it began to measure
    name=$1
    shift
    "$STROBE" bench --device=cpu --threads=1 --out_dir="$name" "$@" >"$name.out" 2>"$name.log" &
    child=$!
    sleep 3
    kill -INT $child
    wait $child && fail "$name exits with 0: $(cat "$name.out")"
    [ $? -eq 130 ] || fail "$name does not exit with 130: $(cat "$name.out" "$name.log")"
    grep -q 'Stopped by Ctrl-C: these are the cells measured so far' "$name.out" ||
        fail "no table: $(cat "$name.out" "$name.log")"
    grep -q 'stopped: the table has the cells measured so far' "$name.log" ||
        fail "no message: $(cat "$name.log")"
    [ -s "$name/bench.json" ] || fail "$name writes no result"
}
stop_it stopped tiny.conf --dtype=float32,bfloat16 --steps=1000000 --warmup=1 --phase=step
[ "$(grep -c '^tiny  *[bf][a-z0-9]*  *step ' stopped.out)" -eq 2 ] ||
    fail "one of the two cells is missing: $(cat stopped.out)"
stop_it stopped_suite --suite=cs336-e2e --size=d128 --n_layer=1 --block_size=8 --warmup=1 \
    --steps=1000000 --phase=forward
grep -q '^d128  *forward ' stopped_suite.out || fail "no line of the cell: $(cat stopped_suite.out)"

# --- invalid requests are refused
expect 2 'no configuration given' "$STROBE" bench --phase=step
expect 2 'not sideways' "$STROBE" bench tiny.conf --phase=forward,sideways
expect 2 '--warmup takes' "$STROBE" bench tiny.conf --warmup=1,x --phase=step
expect 2 '--steps must be 1 to' "$STROBE" bench tiny.conf --steps=0 --phase=step
expect 2 '--mem-limit takes a size' "$STROBE" bench tiny.conf --mem-limit=80
expect 2 '--order must be auto, rounds, twice or once' "$STROBE" bench tiny.conf --order=random
expect 2 'given twice' "$STROBE" bench tiny.conf --dtype=float32,float32
expect 2 'did you mean cs336-e2e?' "$STROBE" bench --suite=cs336-e2
expect 2 'a suite has fixed configurations' "$STROBE" bench tiny.conf --suite=cs336-e2e
expect 2 'the sizes are d128, d256, d384' "$STROBE" bench --suite=cs336-e2e --size=huge --device=cpu
expect 2 'this suite takes only one value of it' "$STROBE" bench --suite=ladder --n_layer=1,2
expect 2 'd128 is given twice' "$STROBE" bench --suite=cs336-e2e --size=d128,d128 --device=cpu
expect 2 'does not take --warmup' "$STROBE" bench --suite=cs336-attention --warmup=banana \
    --device=cpu
expect 2 'does not take --phase' "$STROBE" bench --suite=ladder --phase=nonsense --device=cpu
expect 2 'does not take --order' "$STROBE" bench --suite=cs336-warmup --order=once --device=cpu
expect 2 'does not take --rounds' "$STROBE" bench --suite=cs336-e2e --rounds=2 --device=cpu
expect 2 '--rounds must be 1 to' "$STROBE" bench --suite=cs336-warmup --rounds=0 --device=cpu
expect 2 'does not take --steps' "$STROBE" bench --suite=nanogpt-attention --steps=3 --device=cpu
expect 2 '--size needs --suite=NAME' "$STROBE" bench tiny.conf --size=small --phase=step
expect 2 'this suite trains with flash=false and flash=true' "$STROBE" bench \
    --suite=nanogpt-attention --flash=true --device=cpu
expect 1 'tiny.conf' "$STROBE" bench tiny.conf --phase=step --device=cpu --out_dir=tiny.conf/inside
grep -q '^tiny ' out && fail "it measured before it checked the output path: $(cat out)"
expect 0 'nanogpt-attention' "$STROBE" bench --suite=list

# --- tiny suites: each says that it is a smaller variant, and writes its result
# shellcheck disable=SC2086
expect 0 'The variant for CPUs' "$STROBE" bench --suite=cs336-e2e $tiny --size=d128,d256 \
    --block_size=8 --warmup=1 --steps=2 --out_dir=e2e
[ "$(grep -c '^d128 \|^d256 ' out)" -eq 10 ] || fail "not two models of five lines: $(cat out)"
# --wide: one row a model; a step that does not fit leaves the times of forward and backward
# shellcheck disable=SC2086
expect 0 'd_model  d_ff  layers  heads  forward ms' "$STROBE" bench \
    --suite=cs336-e2e $tiny --size=d128 --block_size=8 --warmup=1 --steps=2 --wide --out_dir=wide \
    --mem-limit=6MiB
grep -q '^d128  *16  *64  *1  *2  *[0-9.]* .* step: needs .* the limit is 6.0 MiB; ' out ||
    fail "no row of the model: $(cat out)"
grep -q '^d128  *step  *- .*needs .* the limit is 6.0 MiB; ' out || fail "no step: $(cat out)"
# --- a published size on a CPU: the batch that fits, then the expected duration, then the steps
published="$tiny --size=small --d_ff=32 --vocab_size=64 --block_size=8 --steps=2"
# shellcheck disable=SC2086
"$STROBE" bench --suite=cs336-e2e $published --phase=step --warmup=1 --mem-limit=100KiB \
    --out_dir=published >out 2>log || fail "a published size: $(cat log)"
sed -n 1p log | grep -q '^small: batch_size=2 instead of 4, the largest that fits in 100.0 KiB' ||
    fail "no batch: $(cat log)"
sed -n 2p log | grep -q '^expected duration: about 1 second' || fail "no duration: $(cat log)"
grep -q '^small  *step  *[0-9]' out || fail "no row: $(cat out)"
grep -q '^small: batch_size=2 instead of 4' out || fail "the table does not tell the batch"
for suite in cs336-warmup cs336-profile; do
    # shellcheck disable=SC2086
    "$STROBE" bench --suite=$suite $published --out_dir=$suite >out 2>log ||
        fail "$suite, a published size: $(cat log)"
    grep -v 'the peaks of this machine' log | sed -n 1p | grep -q '^expected duration: about ' ||
        fail "$suite: no duration: $(cat log)"
    grep -q '^small ' out || fail "$suite: no row: $(cat out)"
done
# shellcheck disable=SC2086
expect 0 'd128, step: step 0 takes ' "$STROBE" bench --suite=cs336-warmup $tiny --size=d128 \
    --block_size=8 --steps=2 --phase=step --rounds=1 --out_dir=warmup
grep -q 'ran in 1 process of its own, in random order' out || fail "no processes: $(cat out)"
grep -q 'first of its process, median of all processes: 7 rows' out || fail "no steps: $(cat out)"
grep -q '^d128  *first step, first process ' out ||
    fail "nothing before the second step: $(cat out)"
[ "$(grep -c '^d128  *[0125]  *step ' out)" -eq 4 ] || fail "not four warm-ups: $(cat out)"
[ "$(ls warmup)" = bench.json ] || fail "files other than the result remain: $(ls warmup)"
expect 0 'slow primitive' "$STROBE" bench --suite=cs336-attention --device=cpu --threads=1 \
    --block_size=16,32 --n_embd=16,32 --steps=2 --out_dir=attention
expect 0 'Recomputation, at the longest T' "$STROBE" bench --suite=cs336-memory --device=cpu \
    --size=small --block_size=128 --mem-limit=1GiB --out_dir=memory
grep -q ' yes$' out && grep -q ' no$' out || fail "no verdicts in: $(cat out)"
mkdir configs
cp tiny.conf configs/shakespeare_char_cpu.conf
expect 0 'The variant for CPUs' "$STROBE" bench --suite=nanogpt-attention --device=cpu --iters=4 \
    --max_iters=2 --eval_iters=1 --out_dir=pair
grep -qx 'max_iters = 2' 'pair/flash=true/config.conf' ||
    fail "the command line does not override the suite: $(cat 'pair/flash=true/config.conf')"
expect 0 '9.953125' "$STROBE" lab accumulate
expect 2 'lab has no ladder sum; strobe lab lists them' "$STROBE" lab sum

# --- the report
expect 0 'Forward, backward and whole steps' "$STROBE" report e2e
[ -s e2e/report.html ] || fail "no page next to the result"
expect 0 'slow primitive' "$STROBE" report attention
"$STROBE" report attention --csv >attention.csv 2>log || fail "report --csv: $(cat log)"
[ "$(wc -l <attention.csv)" -eq $((1 + 2 * 2 * 3)) ] ||
    fail "the CSV has $(wc -l <attention.csv) lines: $(cat attention.csv)"
expect 0 'Recomputation' "$STROBE" report memory e2e --html=three.html
"$STROBE" report memory e2e --csv --html=three.html >three.csv 2>log ||
    fail "report --csv: $(cat log)"
[ "$(grep -c '^config,' three.csv)" -eq 4 ] || fail "not four tables: $(cat three.csv)"
[ "$(grep -c '^$' three.csv)" -eq 3 ] || fail "no empty line between tables: $(cat three.csv)"
expect 0 '"benches"' "$STROBE" report attention grid.json --json --html=both.html
sed 's/"v": 1/"v": 9/' grid.json >future.json
expect 1 'is a result of version 9' "$STROBE" report future.json
. "$here/browser.sh"
for page in e2e/report.html both.html; do
    with_script "$page" "$here/report_actions.js" >acted.html
    sed -i 's/<body/<body data-memory="none"/' acted.html
    chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
        --disable-component-update --disable-sync --host-resolver-rules='MAP * ~NOTFOUND' \
        --user-data-dir="$work/profile" --enable-logging=stderr --virtual-time-budget=20000 \
        --dump-dom "file://$work/acted.html" >dom.html 2>browser.log ||
        fail "$page: the browser failed: $(tail -3 browser.log)"
    if grep CONSOLE browser.log; then fail "$page: errors in the browser's console"; fi
    body=$(grep -o '<body[^>]*>' dom.html)
    case $body in *'data-ready="true"'*'data-failed=""'*) ;; *) fail "$page: $body" ;; esac
    tried=$(echo "$body" | sed 's/.*data-tried="\([0-9]*\)".*/\1/')
    [ "$tried" -ge 30 ] || fail "$page: only $tried actions were tried: $body"
done
