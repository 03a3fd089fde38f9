#!/bin/sh
# `make check`: everything that must pass before a change is merged. Fails if a test or a check
# failed; ends with the sums over both builds, "N passed, N failed, N skipped".
cd "$(dirname "$0")/.." || exit 1
. tools/steps.sh

git rev-parse --is-inside-work-tree >/dev/null || exit 1 # the checks list files by git

# of_version COMMAND VERSION: another version formats in another way, or reports other things.
of_version() {
    "$1" --version | grep -qF " $2" && return
    found=$("$1" --version | grep -oE '[0-9]+\.[0-9.]+' | head -n 1)
    echo "the sources follow $1 $2; this is $found"
    return 77
}
formatted() {
    of_version clang-format 'version 14.' || return
    git ls-files '*.c' '*.h' '*.cpp' '*.hpp' |
        xargs -P "$(nproc)" -n 64 clang-format --dry-run -Werror
}
analyzed() {
    of_version cppcheck 2.10 || return
    mkdir -p build/cppcheck
    cppcheck --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
        -j "$(nproc)" --quiet --std=c11 --language=c -Isrc -D_GNU_SOURCE -DHAVE_DNNL -DHAVE_CURL \
        -DHAVE_CUDA -DHAVE_CUPTI -DHAVE_NVTX -DHAVE_ZLIB --suppressions-list=tools/cppcheck.txt \
        --cppcheck-build-dir=build/cppcheck src
}

tools/install_deps.sh --check || exit 1
step format formatted
step layers tools/check_layers.sh
step headers tools/check_headers.sh
step sizes tools/check_sizes.sh
step columns tools/check_columns.sh
step words tools/check_words.sh
step cppcheck analyzed
tests release
step 'docs are fresh' env STROBE=build/release/strobe tools/gen_docs.sh --check
tests asan
ln -sf build/release/strobe strobe
tools/test_cost.sh build/release build/asan
finish
