#!/bin/sh
# Runs every test program of a build, and the end-to-end scripts; stops at nothing, fails if one failed.
# usage: run_tests.sh BUILD [WORD]
build=$1 word=$2
export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-5000}" # see main.c
export STROBE="$PWD/$build/strobe" STROBE_BUILD="$PWD/$build"
failed=0 passed=0
for t in $(find "$build/tests" -type f -name 'test_*' -perm -u+x | sort) $(ls tests/e2e/test_*.sh 2>/dev/null); do
    case $t in *"$word"*) ;; *) continue ;; esac
    case $t in *.sh) name=$t ;; *) name=${t#"$build"/} ;; esac
    case $t in *.sh) ;; *) [ -f "$name.c" ] || continue ;; esac # left by a test that is gone
    start=$(date +%s)
    if "$t" >"$build/test.log" 2>&1; then
        passed=$((passed + 1))
        echo "  ok    $name ($(($(date +%s) - start)) s)"
    else
        failed=$((failed + 1))
        echo "  FAIL  $name"
        cat "$build/test.log"
    fi
done
echo "$passed passed, $failed failed"
[ "$passed" -gt 0 ] && [ "$failed" -eq 0 ]
