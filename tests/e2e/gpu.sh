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

# A record of the emulated GPU's peaks: to measure them the emulator needs minutes for matmuls of
# 4096 per side.
emulated_machine() {
    mkdir -p "$XDG_CACHE_HOME/strobe"
    cat >"$XDG_CACHE_HOME/strobe/machine.json" <<END
{"v":1,"machines":[{"gpu":"emulated GPU","isa":"compute capability 9.0, 132 SMs, driver CUDA 13.0",
 "library":"cuBLASLt 13.0.0","threads":1,"date":"2026-01-31T08:00:00Z","quick":true,"others":0,
 "l2_bytes":52428800,
 "products":[{"dtype":"f32","flops_per_s":1e10,"flops_per_s_one_thread":1e10,"M":4096,"N":4096,"K":4096,"kernel":"cublaslt"}],
 "copies":[{"bytes_per_thread":1048576,"bytes_per_s":1e10,"bytes_per_s_one_thread":1e10},
           {"bytes_per_thread":268435456,"bytes_per_s":1e10,"bytes_per_s_one_thread":1e10}]}]}
END
}
