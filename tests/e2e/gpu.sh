# Sourced by the scripts that run on the emulated GPU (described in tests/emulator/engine.hpp).
# Compiled kernels stay in the user's cache, for every build folder: an unchanged source is not
# compiled again. Machine records and tuning tables stay in the build folder.
STROBE_BUILD=${STROBE_BUILD:-$PWD/build/release}
emulator=$STROBE_BUILD/emulator
if [ ! -e "$emulator/without.so" ]; then
    echo "skipped: the emulated GPU needs a release build, CUDA's headers and a C++ compiler"
    exit 77
fi
export LD_LIBRARY_PATH="$emulator${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
kernels=${XDG_CACHE_HOME:-$HOME/.cache}/strobe/emulated_kernels
export XDG_CACHE_HOME="$emulator/cache"
if [ ! -e "$XDG_CACHE_HOME/strobe/kernels" ]; then
    mkdir -p "$kernels" "$XDG_CACHE_HOME/strobe"
    find "$kernels" -type f -mtime +30 -delete
    ln -sT "$kernels" "$XDG_CACHE_HOME/strobe/kernels" 2>/dev/null || : # another script was first
fi
