# Sourced by quick.sh and check.sh: steps, each with one line, and the closing line.
mkdir -p build
unset MAKEFLAGS MFLAGS MAKELEVEL # each make below has its own jobs
export WERROR=1
log=build/check.log
failed_checks='' passed=0 failed=0 skipped=0 began=$(date +%s)

# step NAME COMMAND...: one line for each check; if it failed, also its output; exit code 77 means
# skipped
step() {
    name=$1
    shift
    start=$(date +%s) code=0
    "$@" >"$log" 2>&1 || code=$?
    case $code in
    0) printf '  ok    %-32s (%d s)\n' "$name" $(($(date +%s) - start)) ;;
    77)
        printf '  skip  %s: %s\n' "$name" "$(cat "$log")"
        skipped=$((skipped + 1))
        ;;
    *)
        printf '  FAIL  %s\n' "$name"
        cat "$log"
        failed_checks="$failed_checks, $name"
        ;;
    esac
}

# tests MODE VARIABLE=VALUE...: builds and runs what `make test` with these variables does; adds the
# counts to the sums
tests() {
    mode=$1
    shift
    step "build tests, $mode" make -s test-programs MODE="$mode" "$@"
    echo "  tests, $mode:"
    closing='^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$'
    make -s test MODE="$mode" "$@" 2>&1 | tee "$log" | grep -vE "$closing"
    counts=$(grep -E "$closing" "$log" | tail -n 1)
    if [ -z "$counts" ]; then
        failed_checks="$failed_checks, tests $mode (they did not run)"
        return
    fi
    # shellcheck disable=SC2086
    set -- $counts
    passed=$((passed + $1)) failed=$((failed + $3)) skipped=$((skipped + $5))
}

# Prints what failed and the sums; whether all is well.
finish() {
    echo "$(($(date +%s) - began)) s in all"
    [ -z "$failed_checks" ] || echo "checks that failed: ${failed_checks#, }"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ -z "$failed_checks" ] && [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
