#!/bin/sh
# A sample of `make faults`: calls that fail, power cuts, kills and two commands at once, in about
# 40 s on two processors. The sample is always the same, so that a check does not depend on luck;
# SEED=N takes another one, and `make faults` tries them all. Each failure is printed with the
# command that repeats it; docs/RELIABILITY.md has what is promised.
# test: slow release timeout=300; it runs the program some thousand times
set -eu
faults=${STROBE_BUILD:-$PWD/build/release}/faults/faults
STROBE=${STROBE:-$PWD/strobe}
export STROBE
exec "$faults" all --sample --seed="${SEED:-1}"
