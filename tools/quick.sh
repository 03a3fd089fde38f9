#!/bin/sh
# `make quick`: what is worth a look before each commit, in a few minutes: the format of changed
# files, layers, sizes, columns, retired words, the build, and every test that does not call itself slow. `make check` is
# the whole.
cd "$(dirname "$0")/.." || exit 1
. tools/steps.sh

changed() {
    { git diff --name-only HEAD && git ls-files --others --exclude-standard; } | grep -E "$1"
}
formatted() {
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
