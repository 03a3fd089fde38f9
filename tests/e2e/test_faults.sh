#!/bin/sh
# A sample of `make faults`: calls that fail, power cuts, kills and two runs at once, in about 40 s
# on two processors. SEED=N repeats a sample. Each failure is printed with the command that repeats
# it; docs/RELIABILITY.md has what is promised.
# test: slow release timeout=300; it runs the program some hundred times
set -eu
faults=${STROBE_BUILD:-$PWD/build/release}/faults/faults
STROBE=${STROBE:-$PWD/strobe}
export STROBE
seed=${SEED:-$(date +%s)}
failed=0
for part in 'calls --limit=400 --seconds=16' 'cuts --limit=100 --seconds=8' \
    'kills --limit=20 --seconds=8' 'pairs --limit=10 --seconds=6'; do
    # shellcheck disable=SC2086
    "$faults" $part --seed="$seed" || failed=1
done
[ $failed = 0 ] || echo "SEED=$seed repeats this sample"
exit $failed
