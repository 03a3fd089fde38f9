#!/bin/sh
# Every header compiles alone: it includes what it uses. The list of operators is exempt. Headers
# of backend/cuda need those of the CUDA toolkit (CUDA of the Makefile) and are checked if these
# exist.
# usage: check_headers.sh [HEADER...]     default: all, on all processors
cd "$(dirname "$0")/.." || exit 1
if [ $# -eq 0 ]; then
    git ls-files --cached --others --exclude-standard 'src/*.h' 'tests/*.h' |
        xargs -P "$(nproc)" -n 32 tools/check_headers.sh
    exit
fi
cuda=${CUDA:-/usr/local/cuda}/include
bad=0
for header; do
    [ -f "$header" ] || continue
    isa=-DISA=sse2
    case $header in
    */op_list.h) continue ;;
    src/backend/cpu/bf16/*)
        [ "$(uname -m)" = x86_64 ] || continue
        isa='-DISA=avx512_bf16 -march=x86-64-v4 -mavx512bf16'
        ;;
    src/backend/cuda/*)
        [ -f "$cuda/cuda.h" ] && [ -f "$cuda/nvrtc.h" ] && [ -f "$cuda/cublasLt.h" ] || continue
        isa="$isa -isystem $cuda"
        for cupti in "$cuda" "$cuda/../extras/CUPTI/include"; do
            [ ! -f "$cupti/cupti.h" ] || isa="$isa -DHAVE_CUPTI -isystem $cupti"
        done
        ;;
    esac
    printf '#include "%s"\n' "$PWD/$header" |
        ${CC:-gcc} -std=c2x -fopenmp -D_GNU_SOURCE $isa -Isrc -Wall -Wextra -Wmissing-prototypes \
            -Wno-unused-function -Werror -fsyntax-only -x c - || bad=1
done
exit $bad
