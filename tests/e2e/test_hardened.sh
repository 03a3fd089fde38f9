#!/bin/sh
# The release program has what tools/hardening.sh found that this compiler and linker have.
# test: release; other builds are not hardened
set -eu
fail() { echo "FAIL: $*" >&2; exit 1; }
skip() { echo "skipped: $*"; exit 77; }
command -v readelf >/dev/null || skip "readelf is not installed"
if [ "${HARDEN-1}" != 1 ] || grep -qs '^HARDEN *[:?]*=' config.mk; then
    skip "HARDEN is set, so this build may have been made without"
fi
flags=$(tail -n 1 "$STROBE_BUILD/hardening") || fail "the build looked for no flags that harden it"
header=$(readelf -hlWd "$STROBE")
symbols=$(readelf -sW "$STROBE")

# has FLAG TEXT WHERE: if the compiler has FLAG, TEXT is in WHERE
has() {
    case " $flags " in *"$1"*) ;; *) echo "this compiler has no $1"; return ;; esac
    printf '%s\n' "$3" | grep -q "$2" || fail "with $1 the program has no $2"
}
has '' '^ *Type: *DYN' "$header"
has '-z,relro' ' GNU_RELRO ' "$header"
has '-z,now' 'BIND_NOW' "$header"
has -fstack-protector-strong ' __stack_chk_fail@' "$symbols"
has _FORTIFY_SOURCE ' __[a-z]*printf_chk@' "$symbols"
