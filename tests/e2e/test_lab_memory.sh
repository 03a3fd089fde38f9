#!/bin/sh
# `strobe lab memory` on a CPU and on an emulated GPU: every level has its row, the curves are drawn
# as text, as SVG and on the page, and wrong options are refused with a sentence.
. "$(dirname "$0")/tiny.sh"
STROBE_BUILD=${STROBE_BUILD:-$PWD/build/release}
cd "$work"
# column FILE ID ROW: the cell of a table in CSV
column() {
    awk -F, -v id="$2" -v row="$3" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == id) at = i; next }
        $1 == row { print $at }' "$1"
}
# measured FILE ID ROW: checks that there is a positive number
measured() {
    column "$1" "$2" "$3" | awk '{ ok = $1 > 0 } END { exit !ok }' ||
        fail "no $2 of $3: $(cat "$1")"
}

# --- a CPU
cpu="$STROBE lab memory --device=cpu --threads=2 --largest=256KiB --limit=1 --samples=1"
$cpu --svg=m.svg --save=m.json >text || fail "lab memory on a CPU"
for words in '^DRAM ' 'GB/s read' 'clock of a core, measured' ' a read, all threads$' \
    'latency of a dependent load'; do
    grep -q -e "$words" text || fail "no '$words': $(cat text)"
done
grep -q '^ *4 KiB  *8 KiB  *16 KiB .* 256 KiB$' text || fail "no powers of two: $(cat text)"
grep -q '^ *10\{1,2\} GB/s |' text || fail "no powers of ten: $(cat text)"
grep -q '<svg' m.svg && grep -q 'working set of one thread' m.svg || fail "no picture"
grep -q '"unit": "ns"' m.json || fail "no latency in the file"
$STROBE report m.json --html=page.html >/dev/null || fail "no report"
grep -q 'Latency over the working set' page.html || fail "no latency on the page"
$cpu --isa=plain --csv >cpu.csv || fail "--isa=plain"
first=$(sed -n 's/^\(L1\|DRAM\),.*/\1/p' cpu.csv | head -1)
measured cpu.csv gb_per_s "$first"
measured cpu.csv clocks "$first"
# a level that no working set reaches has no numbers
for id in unit_gb_per_s gb_per_s write_gb_per_s copy_gb_per_s ns; do
    [ -z "$(column cpu.csv $id DRAM)" ] || fail "$id of DRAM in 256 KiB: $(cat cpu.csv)"
done
grep -q '^DRAM.*not reached by the largest working set, 256.0 KiB' cpu.csv || fail "no remark"
# more threads than cores do not have more caches
$cpu --threads=16 --csv >more.csv 2>log || fail "16 threads"
cores=$(nproc)
awk -v c="$(column more.csv bytes L1)" -v one="$(column more.csv unit_bytes L1)" -v n="$cores" \
    'BEGIN { exit !(c <= one * n) }' || fail "caches of 16 cores: $(cat more.csv)"
$cpu --threads=1 --json >one.json || fail "one thread"
grep -q 'read, one thread' one.json || fail "no curve of one thread"
grep -q 'all threads' one.json && fail "a curve of all threads, of which there is one"
expect 2 'from 64KiB to 16GiB, as in 256MiB; found 1KiB' $STROBE lab memory --largest=1KiB
expect 2 'take the path of a file' $STROBE lab memory --device=cpu --svg=
expect 2 '--limit 1 to' $STROBE lab memory --limit=0
expect 2 'takes only options; found more' $STROBE lab memory more
# strobe info shows the last table of this machine, and survives a damaged file.
export XDG_CACHE_HOME=$PWD/cache
info="$STROBE info"
$info | grep -q 'not measured yet; strobe lab memory --device=cpu' || fail "info before"
$STROBE lab memory --device=cpu --largest=256KiB --limit=1 --samples=1 >new ||
    fail "a new record"
$info >info && grep -q 'measured 20..-..-.. by strobe lab memory' info || fail "info after"
# A restricted run replaces none that was whole.
sed -i 's/"doubt": 2/"doubt": 0/; s/"date": "20../"date": "1999/' cache/strobe/memory.json
STROBE_LOG=info $STROBE lab memory --device=cpu --largest=256KiB --limit=1 --samples=1 >other 2>log
grep -q 'still show the run of 1999-.*because this one was shorter' log ||
    fail "no line: $(cat log)"
grep '^L1 ' new >l1 && grep -qFf l1 info || fail "another table: $(cat info)"
$STROBE machine --device=cpu --quick | grep -qFf l1 || fail "machine does not show the table"
# The record is that of a number of threads, and so is the advice.
n=$(($(nproc) + 1))
$STROBE machine --device=cpu --threads=$n --quick >machine 2>/dev/null || fail "machine, $n threads"
grep -q "not measured yet; strobe lab memory --device=cpu --threads=$n measures" machine ||
    fail "the advice: $(cat machine)"
echo '{' >cache/strobe/memory.json
$info 2>/dev/null | grep -q 'not measured yet' || fail "info with a damaged file"
$STROBE lab | grep -q '^lab memory ' || fail "strobe lab does not name it"

# --- an emulated GPU
[ -e "$STROBE_BUILD/emulator/without.so" ] || { echo ok, without a GPU; exit 0; }
. "$OLDPWD/tests/e2e/gpu.sh"
export EMU_KERNEL_US=3000 EMU_SMS=3
gpu="$STROBE lab memory --device=cuda --largest=256KiB --limit=1 --samples=1"
for arch in 80 90; do
    EMU_ARCH=$arch $gpu --csv >gpu.csv || fail "lab memory on a GPU, $arch"
    for row in 'shared memory' L1 L2; do measured gpu.csv ns "$row"; done
    for row in 'shared memory' L1 'host link'; do measured gpu.csv gb_per_s "$row"; done
    measured gpu.csv unit_bytes registers
done
$gpu >text || fail "lab memory on a GPU"
grep -q '^warps per SM  *64$' text && grep -q '^registers per SM  *65,536$' text ||
    fail "no limits of the SM: $(cat text)"
echo ok
