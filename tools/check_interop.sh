#!/bin/sh
# `make check-interop`: Strobe beside the programs whose files it reads and writes. Their packages
# go into virtual environments in build; PyTorch takes 5 GB there.
#   tokenizer   `strobe tokenize` beside tiktoken and Hugging Face's tokenizers: every code point,
#               and random texts. The vocabulary of GPT-2 is in the folder STROBE_GPT2, or else in
#               ../shared/data/gpt2
#   gpt2        models beside transformers, in both directions
#   nanogpt     a training handed over to PyTorch and back as nanoGPT's ckpt.pt
# usage: check_interop.sh tokenizer|gpt2|nanogpt [OPTION...]   options of reference/interop_NAME.py
cd "$(dirname "$0")/.." || exit 1
packages='tiktoken==0.14.0 tokenizers==0.23.3'
environment=build/interop vocabulary=${STROBE_GPT2:-../shared/data/gpt2}
part=$1
[ $# -gt 0 ] && shift
case $part in
tokenizer) ;;
gpt2 | nanogpt)
    environment=build/interop-gpt2 packages='torch==2.11.0 transformers==5.24.0 numpy==2.4.6'
    ;;
*) echo "$0: tokenizer, gpt2 or nanogpt, not $part" >&2 && exit 2 ;;
esac

missing() { echo "make check-interop: $*" >&2; exit 1; }

for file in vocab.json merges.txt; do
    [ "$part" != tokenizer ] || [ -f "$vocabulary/$file" ] ||
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
[ "$part" = tokenizer ] && set -- --tokenizer="$vocabulary" "$@"
PYTHONDONTWRITEBYTECODE=1 exec "$environment/bin/python" "reference/interop_$part.py" "$@"
