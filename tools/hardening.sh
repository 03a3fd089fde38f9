#!/bin/sh
# Prints the flags that harden a release build and that this compiler and linker have: stack
# protector, checked C library calls, indirect branch tracking, read-only relocations.
# Usage: tools/hardening.sh CC KEPT. The answer is kept in the file KEPT until the compiler changes,
# so that it costs `make` one comparison.
set -eu
cc=$1 kept=$2
compiler=none # the last word of CC that is no option: ccache gcc --sysroot=FOLDER
for word in $cc; do
    case $word in -*) ;; *) compiler=$(command -v "$word" || echo none) ;; esac
done
if [ -e "$kept" ] && [ "$kept" -nt "$compiler" ] && [ "$kept" -nt "$0" ] &&
    [ "$(head -n 1 "$kept")" = "$cc" ]; then
    tail -n 1 "$kept"
    exit
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/try.c" <<'TEXT'
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char text[16];
    strncpy(text, argv[argc - 1], sizeof text - 1);
    return printf("%s", text) < 0;
}
TEXT
flags=
# has FLAG...: adds them if a program builds with all flags so far and these, without a warning.
has() {
    # shellcheck disable=SC2086
    $cc -O2 -Werror $flags "$@" -o "$folder/try" "$folder/try.c" >/dev/null 2>&1 || return 1
    flags="$flags $*"
}
has -fstack-protector-strong || :
has -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 || has -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 || :
has -fcf-protection || :
has -Wl,-z,relro,-z,now || :
mkdir -p "$(dirname "$kept")"
printf '%s\n%s\n' "$cc" "$flags" >"$kept"
echo "$flags"
