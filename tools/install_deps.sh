#!/bin/sh
# Installs the Debian packages that are missing: what the build needs, with --check what `make check`
# needs too, with --tsan what `make tsan` does. Does nothing, and needs no rights, where all are there.
set -u
build="gcc g++ make pkg-config git libdnnl-dev libjansson-dev libssl-dev libcurl4-openssl-dev zlib1g-dev
       libcmocka-dev libjs-dygraphs bible-kjv"
tsan="libomp-dev"
check="clang-format cppcheck chromium"
case "${1-}" in
'') wanted=$build ;;
--check) wanted="$build $check" ;;
--tsan) wanted="$build $tsan" ;;
*) echo "install_deps.sh: the options are --check and --tsan, not $1" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "install_deps.sh: no apt-get here; install these by this system's own means:" $wanted >&2
    exit 1
fi
missing=
for p in $wanted; do
    case $(dpkg-query -W -f '${Status}' "$p" 2>/dev/null) in
    *' installed') ;;
    *) missing="$missing $p" ;;
    esac
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install_deps.sh: not root, and no sudo here; as root run: apt-get install$missing" >&2
        exit 1
    fi
    as_root=sudo
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
install() { $as_root apt-get install -y --no-install-recommends $missing; }
# Package lists that are too old name files that are gone, so a failure is worth one update.
if ! install >/dev/null 2>&1; then
    $as_root apt-get update -q && install
fi || {
    echo "install_deps.sh: apt-get could not install$missing; what it said stands above" >&2
    exit 1
}
