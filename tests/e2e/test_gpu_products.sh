#!/bin/sh
# `strobe lab products` on an emulated GPU: every type that the GPU has runs there, and its error is
# what rounding explains; 8 bits need compute capability 8.9.
. "$(dirname "$0")/gpu.sh"
. "$(dirname "$0")/tiny.sh"
cd "$work"
# kernels CSV: the rows with a time. Fails if an error is not within a factor of what is expected.
kernels() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { ratio = $(at["error"]) / $(at["expected_error"]); most = 1.34
            if (ratio > most || ratio < ($1 == "fp32" ? 0 : 0.75)) { print; bad = 1 }
            if ($(at["ms_median"]) != "") n++ }
        END { print n; exit bad }' "$1"
}
for arch in 80 90; do
    EMU_ARCH=$arch "$STROBE" lab products --device=cuda --size=64x48x96 --limit=1 --csv \
        >$arch.csv || fail "exit code $?"
    rows=$(kernels $arch.csv) || fail "an error is not as expected: $rows"
    [ "$rows" = $((arch == 90 ? 7 : 4)) ] || fail "$rows rows have a time: $(cat $arch.csv)"
done
