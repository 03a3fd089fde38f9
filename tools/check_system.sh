#!/bin/sh
# Runs the README's commands on another system: makes a root of a Debian release with debootstrap,
# clones the project's last commit into it, runs COMMAND there and prints one line with the result.
# usage: check_system.sh SUITE [ARCH [COMMAND...]]    as root; SUITE: bookworm, trixie, sid;
#   ARCH: amd64 (default), or arm64, for which an amd64 machine needs the package qemu-user-static;
#   COMMAND: make demo (default). The folder ROOTS (/var/tmp/strobe_roots) keeps the root for the
#   next time; the output of the commands is its file SUITE-ARCH.log.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
suite=${1-} arch=${2:-$(dpkg --print-architecture)}
[ "$suite" ] || { sed -n '/^# usage/,/^#.*log/s/^# //p' "$0" >&2; exit 2; }
[ $# -lt 2 ] && shift || shift 2
command=${*:-make demo}
roots=${ROOTS:-/var/tmp/strobe_roots}
root=$roots/$suite-$arch log=$roots/$suite-$arch.log
fail() { echo "check_system.sh: $*" >&2; exit 1; }
[ "$(id -u)" -eq 0 ] || fail "a root of another system needs root's rights; use sudo"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"

mkdir -p "$roots"
# The mark is written last, so that an unfinished root is made from the start.
if [ ! -e "$root/made" ]; then
    rm -rf "$root"
    debootstrap --arch="$arch" --variant=minbase --include=ca-certificates,git,make "$suite" \
        "$root" http://deb.debian.org/debian >"$log" 2>&1 || fail "debootstrap failed; see $log"
    touch "$root/made"
fi
rm -rf "$root/root/strobe"
git -c advice.detachedHead=false clone -q --no-hardlinks "$here" "$root/root/strobe" || exit 1
# A namespace of its own: what is mounted and runs in it ends with it.
began=$(date +%s)
unshare --mount --pid --fork --kill-child sh -c '
    mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/tmp" &&
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts" &&
    ln -sf pts/ptmx "$1/dev/ptmx" && HOME=/root exec chroot "$1" sh -c "cd /root/strobe && $2"' \
    sh "$root" "$command" >"$log" 2>&1
result=$?
last=$(sed '/^[[:space:]]*$/d' "$log" | tail -n 1)
echo "$suite $arch, $(git -C "$root/root/strobe" describe --always), $command:" \
    "$([ $result -eq 0 ] && echo passed || echo "FAILED ($log)")," \
    "$((($(date +%s) - began + 59) / 60)) min: $last"
exit $result
