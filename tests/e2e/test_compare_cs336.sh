#!/bin/sh
# reference/compare_cs336.py: if Strobe and PyTorch do not fit in memory together, PyTorch is
# stopped while Strobe measures. Programs of a few lines replace both: one records its process id,
# the other refuses to measure while that process is alive.
# test: slow release; it tests a program in Python
. "$(dirname "$0")/tiny.sh"
reference=$PWD/reference
command -v python3 >/dev/null || { echo "skipped: python3 is not installed"; exit 77; }
cd "$work"
export PYTHONDONTWRITEBYTECODE=1 WORK="$work"
cat >torch <<'PY'
#!/usr/bin/env python3
import json, os, sys
work = os.environ["WORK"]
open(f"{work}/alive", "w").write(str(os.getpid()))
open(f"{work}/starts", "a").write("x")
print(json.dumps({"torch": "none"}), flush=True)
for line in sys.stdin:
    parts = ("inference", "forward + backward", "step")
    print(json.dumps({"ms": {part: [4.0] * int(line) for part in parts}}), flush=True)
PY
cat >strobe <<'PY'
#!/usr/bin/env python3
import json, os, sys
def lives():
    try:
        os.kill(int(open(os.environ["WORK"] + "/alive").read()), 0)
    except (OSError, ValueError):
        return False
    return True
refuses = {"never": False, "always": True, "together": lives()}[os.environ["REFUSES"]]
row = dict(median_ms=3.0, mean_ms=3.0, std_ms=0.1)
if refuses:
    row = dict(median_ms=None, mean_ms=None, std_ms=None)
row["note"] = "needs 60.3 GiB of memory, 51.0 GiB are free" if refuses else None
phases = ("inference", "forward", "forward + backward", "update", "step")
print(json.dumps({"tables": [{"rows": [dict(row, phase=phase) for phase in phases]}]}))
if refuses:
    sys.exit("strobe: nothing was measured")
PY
chmod +x torch strobe
compare() { # REFUSES: three rounds, in the second Strobe is first
    rm -f starts alive
    expect 0 '' env REFUSES="$1" python3 "$reference/compare_cs336.py" --strobe=./strobe \
        --torch="$work/torch" --sizes=small --rungs=flash --rounds=3 --steps=3 --json=rows.json
    starts=$(wc -c <starts)
    if kill -0 "$(cat alive)" 2>/dev/null; then fail "$1: PyTorch is still running"; fi
}
ratio='| small | flash | step | 4.000 ± 0.000 | 3.000 ± 0.100 | 0.750 (0.750 to 0.750) |'
compare never
grep -qF "$ratio" out || fail "no ratio: $(cat out)"
[ "$starts" -eq 1 ] || fail "PyTorch was started $starts times, not once"
grep -q 'do not fit at once' out && fail "both fit: $(cat out)"
compare together
grep -qF "$ratio" out || fail "no ratio if both do not fit: $(cat out)"
grep -q 'the two do not fit together: PyTorch was restarted' out ||
    fail "no message about it: $(cat out)"
[ "$starts" -eq 3 ] || fail "PyTorch was started $starts times, not for each of its three turns"
compare always
grep -q '| small | flash | needs 60.3 GiB of memory, 51.0 GiB are free |' out ||
    fail "no reason: $(cat out)"
