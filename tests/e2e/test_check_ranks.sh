#!/bin/sh
# tools/check_ranks_gpu.sh, which is for several GPUs, with ranks on the CPU: its checks pass, and
# one of losses that differ fails.
set -eu
STROBE=${STROBE:-$PWD/strobe}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" # MPI leaks
command -v mpirun >/dev/null && "$STROBE" info 2>/dev/null | grep -q 'joined by MPI' || {
    echo "skipped: ranks that are processes (no MPI)"
    exit 77
}
export STROBE SMALL=1 ONLY="losses resume"
tools/check_ranks_gpu.sh --device=cpu >"$work/out" || { cat "$work/out"; exit 1; }
[ "$(grep -c ' ok$' "$work/out")" = 4 ] || { cat "$work/out"; exit 1; }

# a program whose ranks have another learning rate than one rank
cat >"$work/strobe" <<END
#!/bin/sh
case "\$*" in *--ranks=2*) exec "$(readlink -f "$STROBE")" "\$@" --learning_rate=0.1 ;; esac
exec "$(readlink -f "$STROBE")" "\$@"
END
chmod +x "$work/strobe"
STROBE=$work/strobe ONLY=losses tools/check_ranks_gpu.sh --device=cpu >"$work/out" && {
    echo "FAIL: it passes losses that differ: $(cat "$work/out")"
    exit 1
}
grep -q 'flat, against one .* FAIL$' "$work/out" || { cat "$work/out"; exit 1; }
echo ok
