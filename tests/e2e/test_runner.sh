#!/bin/sh
# The test runner (tools/run_tests.c): its counts, time limits and refusals.
# test: release; the runner is not built with sanitizers
set -eu
here=$PWD
runner=${STROBE_BUILD:-$PWD/build/release}/run_tests
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir build

# script NAME LINES
script() {
    printf '#!/bin/sh\n%s\n' "$2" >"test_$1.sh"
    chmod +x "test_$1.sh"
}
# run CODE LINE TEST...: checks the exit code and a line of the output
run() {
    code=$1 line=$2
    shift 2
    got=0
    "$runner" build --jobs=2 $(printf 'test_%s.sh ' "$@") >out 2>&1 || got=$?
    [ "$got" = "$code" ] && grep -qxF -- "$line" out && return
    echo "FAIL: exit code $got instead of $code, or no line \"$line\": $*"
    cat out
    exit 1
}
script ok 'true'
script fails 'echo broken; exit 3'
script hangs '# test: timeout=1
sleep 60'
script dies 'kill -SEGV $$'
script skips 'echo "skipped: no GPU"; exit 77'
script part 'echo "skipped: no browser"'
script shards '# test: shards=2
echo $TEST_SHARD >shard.${TEST_SHARD%/2}; [ $TEST_SHARD != 2/2 ] || exit 1'
script alone '# test: alone slow; it times
sleep .3; [ ! -e busy ]'
script busy 'touch busy; sleep 1; rm busy'
script typo '# test: allone'
script cases 'echo "[  PASSED  ] 3 test(s)."
echo "[  SKIPPED ] tests: 1 test(s), listed below:"'
script failed_cases 'echo "[  PASSED  ] 3 test(s)."
echo "[  FAILED  ] tests: 2 test(s), listed below:"; exit 2'

run 0 '1 passed, 0 failed, 0 skipped' ok
run 1 '1 passed, 1 failed, 0 skipped' ok fails
run 1 'broken' fails
run 1 '  test_fails.sh ended with exit code 3' fails
run 1 '  test_hangs.sh was stopped after 1 s, its time limit' hangs
run 1 '0 passed, 1 failed, 0 skipped' dies
run 0 '1 passed, 0 failed, 1 skipped' ok skips
run 0 '  test_skips.sh, 1: no GPU' skips
run 0 '1 passed, 0 failed, 1 skipped' part
run 1 '1 passed, 1 failed, 0 skipped' shards
[ "$(cat shard.1 shard.2)" = '1/2
2/2' ] || { echo "FAIL: shards: $(cat shard.*)"; exit 1; }
run 0 '2 passed, 0 failed, 0 skipped' alone busy
run 2 'run_tests: test_typo.sh: unknown word "allone" after "test:"' typo
run 0 '3 passed, 0 failed, 1 skipped' cases
run 1 '3 passed, 2 failed, 0 skipped' failed_cases

# tools/test_cost.sh sums them by kind, and compares the slow ones with tests/slow.txt.
mkdir -p tree/tools tree/tests/e2e tree/tests/base tree/one tree/asan
cp "$here/tools/test_cost.sh" tree/tools
echo x | tee tree/tests/e2e/test_gpu_a.sh tree/tests/base/b.c >tree/tests/e2e/test_c.sh
printf '%s\n' '9 50 tests/e2e/test_gpu_a.sh 1/2' '9 20 tests/e2e/test_gpu_a.sh 2/2' \
    '1 3 tests/base/b' '1 4 tests/e2e/test_c.sh' '9 99 tests/base/gone' \
    >tree/one/test_times
echo '7 8 tests/base/b' >tree/asan/test_times
echo 'tests/base/b  a reason' >tree/tests/slow.txt
tree/tools/test_cost.sh one asan | tr ',' '\n' >out
diff out - <<'END' || { echo 'FAIL: test_cost.sh'; exit 1; }
85 s of processor time: emulated GPU 70
 kernel sources 0
 end to end 4
 unit 3
 sanitizers 8
slowest: tests/e2e/test_gpu_a.sh 70 s
 tests/base/b (sanitizers) 8 s
 tests/e2e/test_c.sh 4 s
 tests/base/b 3 s
tests/e2e/test_gpu_a.sh needs 70 s and is not in tests/slow.txt
tests/base/b is in tests/slow.txt and needs at most 30 s
END
