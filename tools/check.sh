#!/bin/sh
# `make check`: all that must hold before a change is taken. Ends with "N passed, M failed", summed over
# the test programs of both builds; fails if a test or a check failed.
cd "$(dirname "$0")/.." || exit 1
jobs=$(nproc)
log=build/check.log
mkdir -p build
failed_checks='' passed=0 failed=0

# step NAME COMMAND...: one line for each check, and all it said if it failed
step() {
    name=$1
    shift
    start=$(date +%s)
    if "$@" >"$log" 2>&1; then
        printf '  ok    %-24s (%d s)\n' "$name" $(($(date +%s) - start))
    else
        printf '  FAIL  %s\n' "$name"
        cat "$log"
        failed_checks="$failed_checks, $name"
    fi
}

formatted() { git ls-files '*.c' '*.h' '*.cpp' '*.hpp' | xargs clang-format --dry-run -Werror; }
analysed() {
    cppcheck --enable=warning,performance,portability --inline-suppr --error-exitcode=1 -j "$jobs" \
        --quiet --std=c11 --language=c -Isrc -D_GNU_SOURCE -DHAVE_DNNL -DHAVE_CURL -DHAVE_CUDA -DHAVE_CUPTI -DHAVE_NVTX -DHAVE_ZLIB \
        --suppressions-list=tools/cppcheck.txt --cppcheck-build-dir=build/cppcheck src
}

# tests MODE: builds, runs every test program, adds up its counts
tests() {
    step "build $1" make -s -j "$jobs" all MODE="$1"
    echo "  tests, $1:"
    make -s -j "$jobs" test MODE="$1" 2>&1 | tee "$log" | grep -vE '^ +(cc|ld) |^rm '
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
    if [ -z "$counts" ]; then
        failed_checks="$failed_checks, tests $1 (they did not run)"
        return
    fi
    passed=$((passed + ${counts%% passed*}))
    counts=${counts#*, }
    failed=$((failed + ${counts%% failed}))
}

tools/install_deps.sh --check || exit 1
step format formatted
step layers tools/check_layers.sh
step headers tools/check_headers.sh
step sizes tools/check_sizes.sh
mkdir -p build/cppcheck
step cppcheck analysed
tests release
step 'docs are fresh' tools/gen_docs.sh --check
tests asan
ln -sf build/release/strobe strobe

[ -z "$failed_checks" ] || echo "checks that failed: ${failed_checks#, }"
echo "$passed passed, $failed failed"
[ -z "$failed_checks" ] && [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
