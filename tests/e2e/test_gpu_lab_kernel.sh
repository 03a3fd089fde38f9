#!/bin/sh
# strobe lab kernel on an emulated GPU: values and gradients of separate and generated kernels are
# right in both types, with blocks in both orders; the generated source is shown.
. "$(dirname "$0")/gpu.sh"
. "$(dirname "$0")/tiny.sh"
cd "$work"
export EMU_ARCH=90 EMU_KERNEL_US=3000
kernel="$STROBE lab kernel --device=cuda --samples=1"
choice='where(x < 0, a * (exp(x) - 1), x) + where(y > 0, log(y), 0) * max(x, z)'
$kernel "$choice" --set=a=1.5 --size=1003 --csv >out || fail "$(cat out)"
[ "$(grep -c '^forward' out)" = 6 ] || fail "no rows: $(cat out)"
EMU_REVERSE=1 $kernel "$choice" --set=a=1.5 --size=1003 --dtype=bfloat16 --csv >out ||
    fail "$(cat out)"
$kernel 'exp(x) * a' --set=a=2 --show >out || fail "--show"
grep -q 'const float r1 = scale_of(r0, 2.0f);' out || fail "no source: $(cat out)"
$kernel 'exp(x) * a' --set=a=2 --ptx | grep -qx '// emulated GPU: no PTX' || fail "--ptx"
echo ok
