#!/bin/sh
# `make quick`: a check of a few minutes before each commit: format of changed files, layers, sizes,
# columns, retired words, the build, and every test that is not marked slow. `make check` runs
# everything.
cd "$(dirname "$0")/.." || exit 1
. tools/steps.sh

git rev-parse --is-inside-work-tree >/dev/null || exit 1 # the checks list files by git

changed() {
    { git diff --name-only HEAD && git ls-files --others --exclude-standard; } | grep -E "$1"
}
formatted() {
    command -v clang-format >/dev/null || {
        echo "clang-format is missing; tools/install_deps.sh --check installs it"
        return 1
    }
    changed '\.(c|h|cpp|hpp)$' | while read -r file; do [ ! -f "$file" ] || echo "$file"; done |
        xargs -r clang-format --dry-run -Werror
}

step 'format of changed files' formatted
step layers tools/check_layers.sh
step sizes tools/check_sizes.sh
step columns tools/check_columns.sh
step words tools/check_words.sh
export STROBE_NO_BROWSER=1
tests release QUICK=1
finish
