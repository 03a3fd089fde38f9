#!/bin/sh
# `strobe lab occupancy` on an emulated GPU: rows, limits, sums that are checked, files; and the
# sentence on a CPU.
. "$(dirname "$0")/tiny.sh"
STROBE_BUILD=${STROBE_BUILD:-$PWD/build/release}
cd "$work"
expect 1 'Without a GPU, strobe plan CONFIG --device=cuda --occupancy computes' $STROBE lab \
    occupancy --device=cpu
expect 0 'cuda or cuda:N (default: the first GPU)' $STROBE lab occupancy --help
expect 2 'from 4KiB to 64GiB, as in 256MiB; found 1KiB' $STROBE lab occupancy --size=1KiB
expect 2 '--limit 1 to' $STROBE lab occupancy --limit=0
expect 2 'takes only options; found more' $STROBE lab occupancy more
$STROBE lab | grep -q '^lab occupancy ' || fail "strobe lab does not name it"
[ -e "$STROBE_BUILD/emulator/without.so" ] || { echo ok, without a GPU; exit 0; }
. "$OLDPWD/tests/e2e/gpu.sh"
export EMU_KERNEL_US=3000 EMU_SMS=3
gpu="$STROBE lab occupancy --device=cuda --size=21KiB --limit=1 --samples=1"
# An SM of compute capability 9.0 has 228 KiB of shared memory, one of 8.0 164; 1 KiB of each block
# is reserved.
EMU_ARCH=90 $gpu --csv >90.csv || fail "compute capability 9.0"
EMU_ARCH=80 $gpu --csv >80.csv || fail "compute capability 8.0"
for row in '90.csv 115712 2,8,12.5,shared' '90.csv 76800 3,12,' '80.csv 166912 1,4,6.25,'; do
    set -- $row
    grep -q "^shared memory,,$2,$3" "$1" || fail "no row $*: $(cat "$1")"
done
grep -q '^registers,,0,16,64,100,threads,32768,' 90.csv || fail "registers: $(cat 90.csv)"
$gpu --svg=o.svg --save=o.json >text || fail "files"
grep -q 'one wave' text && grep -q ' b shared memory' text || fail "$(cat text)"
grep -q '<svg' o.svg && grep -q 'shared memory' o.svg || fail "no picture"
$STROBE report o.json --html=page.html >/dev/null || fail "no report"
grep -q 'warps that an SM holds' page.html || fail "no curve on the page"
echo ok
