#!/bin/sh
# `strobe lab launch` on a CPU and on an emulated GPU: every way has its row, results are checked
# before they are timed, the clock of the device is read, and wrong options are refused.
. "$(dirname "$0")/tiny.sh"
STROBE_BUILD=${STROBE_BUILD:-$PWD/build/release}
cd "$work"
expect 2 'from 16KiB to 16GiB, as in 64MiB; found 1KiB' $STROBE lab launch --size=1KiB
expect 2 '--limit 1 to' $STROBE lab launch --limit=0
expect 2 '--launches must be 1 to 1000' $STROBE lab launch --launches=1001
expect 0 'each sample is 1 operator y = y + 1' \
    $STROBE lab launch --device=cpu --launches=1 --samples=1 --limit=1
expect 2 '--threads must be 0 to' $STROBE lab launch --threads=-1
expect 2 'takes only options; found more' $STROBE lab launch more
$STROBE lab | grep -q '^lab launch ' || fail "strobe lab does not name it"
# ways FILE: the number of rows of each way, "9 graph, 2 two streams, "
ways() {
    sed 1d "$1" | cut -d, -f1 | sort | uniq -c | awk '{ sub(/^ +/, ""); printf "%s, ", $0 }'
}

# --- a CPU
cpu="$STROBE lab launch --device=cpu --launches=10 --samples=9 --limit=2"
$cpu --threads=2 --csv >cpu.csv || fail "lab launch on a CPU"
[ "$(ways cpu.csv)" = '5 a team for each, 1 empty region, 5 fused, 5 one team, 5 one thread, ' ] ||
    fail "rows: $(ways cpu.csv)"
awk -F, 'NR > 1 && !($4 > 0 && $6 > 0) { bad = 1 } END { exit bad }' cpu.csv ||
    fail "times: $(cat cpu.csv)"
# A region of threads costs more than a loop over 256 floats, whatever else the machine does.
awk -F, '$2 == 256 { us[$1] = $4 } END { exit !(us["a team for each"] > us["one thread"]) }' \
    cpu.csv || fail "a team costs nothing: $(cat cpu.csv)"
$cpu --threads=2 --svg=c.svg --save=c.json >text || fail "files"
grep -q 'an empty region of 2 threads costs' text || fail "no sentence: $(cat text)"
grep -q '<svg' c.svg && grep -q 'a team for each' c.svg || fail "no picture"
grep -q '"unit": "us"' c.json || fail "no unit in the file"
$STROBE report c.json --html=page.html >/dev/null || fail "no report"
grep -q 'Time of an operator' page.html || fail "no bars on the page"
$cpu --threads=1 >text || fail "one thread"
grep -q 'there is no team to start' text || fail "a team of one thread: $(cat text)"

# --- an emulated GPU, where each kernel takes 3 ms by the clock of the device
[ -e "$STROBE_BUILD/emulator/without.so" ] || { echo ok, without a GPU; exit 0; }
. "$OLDPWD/tests/e2e/gpu.sh"
export EMU_KERNEL_US=3000 EMU_SMS=3
gpu="$STROBE lab launch --device=cuda --size=64KiB --launches=9 --samples=2 --limit=2"
for arch in 80 90; do
    EMU_ARCH=$arch $gpu --csv >gpu.csv || fail "lab launch on a GPU, $arch"
    [ "$(ways gpu.csv)" = '8 fused, 8 graph, 8 one stream, 2 two streams, 2 waiting, ' ] ||
        fail "rows: $(ways gpu.csv)"
    # One kernel for each launch, but one for all where they are fused: 3000 / 9.
    awk -F, 'NR > 1 { wanted = $1 == "fused" ? 333.333 : 3000; off = $8 - wanted
        if (!($4 > 0 && $7 > 0 && $7 <= $4 && off < 0.01 && off > -0.01)) bad = 1 }
        END { exit bad }' gpu.csv || fail "times: $(cat gpu.csv)"
done
EMU_EARLY=1 $gpu --markdown >early.md || fail "all at once"
$gpu --save=g.json >text || fail "lab launch on a GPU"
grep -q '^launches are ' text || fail "no sentence: $(cat text)"
# Sixteen kernels take 48 ms; the emulated streams overlap nothing.
grep -q '^kernel, alone  *48 ' text && grep -q '^largest: the floor  *48 ' text ||
    fail "kernels: $(cat text)"
for row in 'one stream' '2 streams' '4 streams'; do
    grep -q "^$row  *48\.[0-9]* " text || fail "$row: $(cat text)"
done
$STROBE report g.json --html=page.html >/dev/null || fail "no report"
grep -q 'copies beside kernels' page.html || fail "no copies on the page"
expect 1 'kernel launch of launch/gpu/01_add.cu: the GPU cannot' env EMU_FAIL=launch $gpu
expect 1 'kernel launch failed' env EMU_FAULT=launch $gpu
echo ok
