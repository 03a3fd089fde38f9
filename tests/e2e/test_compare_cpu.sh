#!/bin/sh
# reference/compare_cpu.py: contestants run in turn, ratios are taken within rounds, refusals are
# reported; Python reads Strobe's configuration files like Strobe does; the files for llm.c have its
# format. A program of a few lines replaces llm.c. Parts that need PyTorch run if some python3 has
# it.
# test: slow release; it tests a program in Python
. "$(dirname "$0")/tiny.sh"
reference=$PWD/reference configs=$PWD/configs
command -v python3 >/dev/null || { echo "skipped: python3 is not installed"; exit 77; }
cd "$work"
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$reference

# --- configuration files: every key that Python knows has the value that the program reads
: >empty.conf
{
    printf "include = 'tiny.conf'\ngelu = \"tanh\" # quoted\nbias=true\n\n"
    printf '  # c\nbatch_size = 3# no comment\n'
} | sed 's/3# no comment/3   # a comment/' >includes.conf
for file in empty.conf includes.conf "$configs"/*.conf; do
    grep -q '^init_from' "$file" && continue # its keys follow the weights
    "$STROBE" config "$file" >printed
    python3 - "$file" printed <<'PY' || fail "Python reads $file differently"
import sys, strobe_config
printed = dict(line.split(" = ", 1) for line in open(sys.argv[2]) if " = " in line)
for key, value in strobe_config.read(sys.argv[1]).items():
    text = printed[key].strip().strip('"')
    named = isinstance(value, (bool, str))
    same = text == str(value).lower() if named else float(text) == float(value)
    assert same, f"{key}: the program reads {text}, Python {value}"
PY
done
expect 1 'n_layr' python3 "$reference/llmc_model.py" . llmc tiny.conf --n_layr=3

# --- llm.c: sizes of its files, and batch and context in its source
mkdir clone
cat >clone/train_gpt2.c <<'C'
#include <stdio.h>
int main() {
    int B = 4; // batch size 4
    int T = 64; // sequence length 64
    for (int i = 0; i <= 40; i++)
        printf("step %d: train loss 4.2 (took %d.5 ms)\n", i, 100 * B + T);
    return 0;
}
C
cp -r clone other
sed -i 's/int T =/int t =/; s/+ T/+ t/' other/train_gpt2.c
expect 1 'has no line `int T' python3 "$reference/llmc_model.py" other llmc tiny.conf
python3 "$reference/llmc_model.py" clone llmc tiny.conf
parameters=$((2 * (12 * 32 * 32 + 13 * 32) + (128 + 32) * 32 + 2 * 32))
[ "$(wc -c <llmc/gpt2_124M.bin)" = $((1024 + 4 * parameters)) ] || fail "size of llm.c's model"
[ "$(od -An -tu4 -N32 llmc/gpt2_124M.bin | tr -s ' \n' ' ')" = ' 20240326 3 32 65 2 2 32 128 ' ] ||
    fail "llm.c's header"
[ "$(wc -c <llmc/dev/data/tinyshakespeare/tiny_shakespeare_train.bin)" = \
    $((1024 + 2 * (64 * 4 * 32 + 1))) ] ||
    fail "size of llm.c's tokens"

# --- order of runs, ratios, refusals
sed 's/dropout = .*/dropout = 0/' tiny.conf >plain.conf
cat >compare.py <<'PY'
import json, sys
rows = {r["name"]: r for r in json.load(open("out.json"))["configs"][0]["rows"]}
ratios = {(q["of"], q["over"]): q for q in json.load(open("out.json"))["configs"][0]["ratios"]}
flash, slow = rows["strobe fp32 flash"], rows["strobe fp32 slow"]
assert flash["step_ms"]["n"] >= 6 and len(flash["turns"]) == 2, flash
refused = rows["torch fp32 slow"]["refused"]
assert "cannot" in refused or "No such" in refused, rows
each = [a["median"] / b["median"] for a, b in zip(flash["turns"], slow["turns"])]
found = ratios["strobe fp32 flash", "strobe fp32 slow"]
assert (found["min"], found["max"]) == (min(each), max(each)) and found["rounds"] == 2, found
assert abs(found["median"] - sum(each) / 2) < 1e-9, found
assert rows["llmc fp32 slow"]["step_ms"]["median"] == 432.5, rows["llmc fp32 slow"]
assert ("strobe fp32 slow", "llmc fp32 slow") in ratios
assert ("llmc fp32 slow", "strobe fp32 slow") not in ratios
PY
expect 0 '432.50' python3 "$reference/compare_cpu.py" --strobe="$STROBE" --threads=1 --rounds=2 \
    --least=6 --turn=0 --rows=strobe:float32:flash,strobe:float32:slow,torch:float32:slow \
    --torch=/nonexistent/python3 --llmc=clone --json=out.json plain.conf
python3 compare.py || fail "wrong JSON of a comparison"
expect 0 '| 1 |' python3 "$reference/compare_cpu.py" --strobe="$STROBE" --threads=1 --rounds=9 \
    --budget=0.001 --rows=strobe:float32:flash plain.conf
expect 0 'has no dropout' python3 "$reference/compare_cpu.py" --strobe="$STROBE" --threads=1 \
    --rounds=1 --least=1 --turn=0 --rows=strobe:float32:flash --llmc=clone tiny.conf
expect 1 'exceed the allowed cores' python3 "$reference/compare_cpu.py" --threads=5000 tiny.conf
expect 1 'expected strobe' python3 "$reference/compare_cpu.py" --rows=strobe:float16:flash \
    --threads=1 tiny.conf

# --- PyTorch: the timed model is the model of the golden files
for python in python3 /usr/bin/python3 ''; do
    [ -n "$python" ] || { echo "skipped: PyTorch is not installed"; exit 0; }
    "$python" -c 'import torch' 2>/dev/null && break
done
"$python" - <<'PY' || fail "gpt_nn.py and gpt_torch.py differ"
import torch, gpt_nn, gpt_torch
for bias in (False, True):
    for gelu in ("erf", "tanh"):
        s = gpt_torch.Shape(2, 2, 20, 12, 29, bias, gelu)
        g = torch.Generator().manual_seed(1)
        w = {k: x.double() for k, x in gpt_torch.draw_parameters(s, g, 0.2, 0.1).items()}
        ids = torch.randint(29, (4, 13), generator=g)
        fused = hasattr(torch.nn.functional, "scaled_dot_product_attention")
        for flash in [False] + [True] * fused:
            m = gpt_nn.GPT(s, flash).double()
            m.load(w)
            a = float(m(ids[:, :-1], ids[:, 1:]))
            b = float(gpt_torch.loss(s, w, ids[:, :-1], ids[:, 1:]))
            assert abs(a - b) < 1e-12, (bias, gelu, flash, a, b)
PY
expect 0 '"median"' "$python" "$reference/bench_torch.py" tiny.conf --attention=slow --threads=1 \
    --steps=2 --warmup=1
expect 0 'torch bf16 slow | ' "$python" "$reference/compare_cpu.py" --strobe="$STROBE" --threads=1 \
    --rounds=1 --least=2 --turn=0 \
    --rows=strobe:float32:flash,torch:float32:slow,torch:bfloat16:slow --json=torch.json plain.conf
python3 - <<'PY' || fail "wrong number of PyTorch's steps"
import json
for r in json.load(open("torch.json"))["configs"][0]["rows"]:
    assert r["step_ms"]["n"] == 2 and r["step_ms"]["min"] > 0, r
PY
