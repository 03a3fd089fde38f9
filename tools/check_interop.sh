#!/bin/sh
# `make check-interop`: `strobe tokenize` beside tiktoken and Hugging Face's tokenizers, whose
# packages go into a virtual environment in build/interop: every code point, and random texts. The
# vocabulary of GPT-2 is in the folder STROBE_GPT2, or else in ../shared/data/gpt2.
# usage: check_interop.sh [OPTION...]     options of reference/interop_tokenizer.py
cd "$(dirname "$0")/.." || exit 1
packages='tiktoken==0.14.0 tokenizers==0.23.3'
environment=build/interop vocabulary=${STROBE_GPT2:-../shared/data/gpt2}

missing() { echo "make check-interop: $*" >&2; exit 1; }

for file in vocab.json merges.txt; do
    [ -f "$vocabulary/$file" ] ||
        missing "$vocabulary has no $file; set STROBE_GPT2 to a folder with GPT-2's vocab.json" \
            "and merges.txt"
done
command -v python3 >/dev/null || missing "python3 is not installed"
# The file `packages` is written last, so an installation that was interrupted is repeated.
if [ "$(cat "$environment/packages" 2>/dev/null)" != "$packages" ]; then
    mkdir -p build
    python3 -m venv --clear "$environment" >build/interop.log 2>&1 ||
        missing "python3 cannot make a virtual environment (Debian: the package python3-venv);" \
            "build/interop.log says why"
    "$environment/bin/python" -m pip install --disable-pip-version-check $packages \
        >build/interop.log 2>&1 ||
        missing "pip cannot install $packages, perhaps without a network; build/interop.log" \
            "says why"
    echo "$packages" >"$environment/packages"
fi
PYTHONDONTWRITEBYTECODE=1 exec "$environment/bin/python" reference/interop_tokenizer.py \
    --tokenizer="$vocabulary" "$@"
