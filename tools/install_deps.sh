#!/bin/sh
# Installs the Debian packages that are missing: what the build and its tests need; with --check
# also what `make check` needs, with --tsan what `make tsan` needs, with --fuzz clang with
# libFuzzer, which `make fuzz` prefers to gcc, with --clang what `make CC=clang` needs; with --text
# only the text that `make demo` trains on if Shakespeare cannot be downloaded. Does nothing, and
# needs no privileges, if all are installed.
set -u
build="gcc g++ make pkg-config git libdnnl-dev libjansson-dev libssl-dev libcurl4-openssl-dev
    zlib1g-dev libzstd-dev libcmocka-dev libjs-dygraphs"
tsan="libomp-dev"
# The runtime library has a version in its name: that of the package clang.
llvm=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p')
clang="clang libomp-dev"
fuzz="clang libclang-rt-${llvm:-14}-dev"
text="bible-kjv"
check="clang-format cppcheck chromium openssl $text"
case "${1-}" in
'') wanted=$build ;;
--check) wanted="$build $check" ;;
--tsan) wanted="$build $tsan" ;;
--fuzz) wanted="$build $fuzz" ;;
--clang) wanted="$build $clang" ;;
--text) wanted=$text ;;
*)
    echo "install_deps.sh: the options are --check, --tsan, --fuzz, --clang, --text, not $1" >&2
    exit 2
    ;;
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
    echo "install_deps.sh: apt-get could not install$missing; see its output above" >&2
    exit 1
}
