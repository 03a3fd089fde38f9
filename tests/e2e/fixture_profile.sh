#!/bin/sh
# Writes a profile.json as `strobe profile` does (docs/PROFILE.md), for an invented step of a model
# of 12 blocks.
# usage: fixture_profile.sh FILE NAME=VALUE...   flash, blocks, dropped, memory (true: writes the
# memory in use as well), counters (true: with hardware counters, DRAM bytes twice the plan's),
# launches (true: with how kernels are launched, but matmuls)
set -eu
file=$1
shift
flash=true blocks=12 dropped=0 memory=true counters=false launches=false
for pair in "$@"; do eval "${pair%%=*}='${pair#*=}'"; done
awk -v flash="$flash" -v blocks="$blocks" -v dropped="$dropped" -v memory="$memory" \
    -v counters="$counters" -v launches="$launches" '
function range(words,   n, word, i, text) {
    n = split(words, word, "/")
    for (i = 1; i <= n; i++) text = text (i > 1 ? "," : "") "\"" word[i] "\""
    return "[" text "]"
}
function counted(bytes) {
    if (counters != "true") return "null"
    return sprintf("{\"dram_read\":%.0f,\"dram_written\":%.0f,\"dram_of_node\":%.0f," \
        "\"tensor_active\":0.25,\"sm_active\":0.5,\"dram_busy\":0.75}",
        bytes, bytes, 2 * bytes)
}
function launched(op, blocks) {
    if (launches != "true" || op == "MATMUL") return ""
    blocks = 132 * (1 + length(op))
    return sprintf(",\"launch\":{\"blocks\":%d,\"threads\":256,\"registers\":40," \
        "\"static_bytes\":512,\"dynamic_bytes\":0,\"sm_blocks\":6,\"sm_warps\":48," \
        "\"sm_warps_most\":64,\"limit\":\"registers\",\"waves\":%.7g,\"tail\":0.5}",
        blocks, blocks / 132 / 6)
}
# A kernel that runs for `us` microseconds, half a microsecond after the previous one.
function run(words, phase, layer, scope, op, family, shape, flops, bytes, us, kernel, \
        floor, bound, ms) {
    floor = flops / 8e14 * 1e3; bound = "compute"
    if (bytes / 4e12 * 1e3 > floor) { floor = bytes / 4e12 * 1e3; bound = "memory" }
    if (us < 10 && floor * 1e3 < us / 4) bound = "latency"
    ms = us / 1e3
    row[rows] = sprintf("{\"plan\":\"%s\",\"node\":%d,\"op\":\"%s\",\"dtype\":\"bf16\"," \
        "\"peak_of\":\"bf16\",\"shape\":\"%s\",\"types\":\"bf16 (%s) -> bf16\"," \
        "\"phase\":\"%s\",\"layer\":%s,\"scope\":\"%s\",\"range\":%s," \
        "\"family\":\"%s\",\"kernel\":\"%s\",\"device_kernel\":\"%s\"," \
        "\"flops\":%.0f,\"bytes\":%.0f,\"floor_ms\":%.7g,\"bound\":\"%s\"," \
        "\"per_step\":1,\"ms_per_step\":%.7g,\"hidden_ms_per_step\":0,\"run_ms\":{\"n\":20," \
        "\"median\":%.7g,\"mean\":%.7g,\"std\":%.7g,\"min\":%.7g,\"max\":%.7g,\"p95\":%.7g}," \
        "\"threads\":null,\"counters\":%s%s}", phase == "update" ? "update" : "micro", rows, op,
        shape, shape, phase, layer < 0 ? "null" : layer, scope, range(phase "/" words),
        family, kernel, kernel "_" tolower(op), flops, bytes, floor, bound,
        ms, ms * .99, ms, ms * .02, ms * .95, ms * 1.1, ms * 1.08, counted(bytes), launched(op))
    now += .5
    moment[rows] = sprintf("[%d,%.7g,%.7g,0]", rows, now, now + us)
    now += us; idle += .5; in_phase[phase] += us + .5; idle_in[phase] += .5
    if (phase == "forward" && layer >= 0) saved += bytes / 4
    if (phase == "backward" && layer >= 0) saved -= bytes / 8
    if (saved < 0 || phase == "update") saved = 0
    used[rows] = saved
    if (saved > used[peak]) peak = rows
    rows++
}
function matmul(words, phase, layer, scope, m, n, k, us) {
    run(words, phase, layer, scope, "MATMUL", "matrix products", m " x " n " x " k, 2 * m * n * k,
        2 * (m * n + m * k + n * k), us, "cublaslt")
}
function grad(words, layer, scope, m, n, k, us) { # of both inputs
    matmul(words, "backward", layer, scope, m, k, n, us)
    matmul(words, "backward", layer, scope, k, n, m, us * 1.1)
}
BEGIN {
    T = 16384; C = 768; peak = 0; rows = 0
    run("embeddings", "forward", -1, "wte", "EMBED_SUM", "embeddings", "16,1024,768", 0, 4 * T * C,
        18, "cuda")
    for (l = 0; l < blocks; l++) {
        b = "block " l "/"; h = "h." l
        run(b "norm 1", "forward", l, h ".ln_1", "ADD_LAYERNORM", "norms", "16,1024,768", 8 * T * C,
            8 * T * C, 21, "registers")
        matmul(b "attention/q, k, v", "forward", l, h ".attn.c_attn", T, 3 * C, C, 105 + l % 3)
        if (flash == "true")
            run(b "attention/flash attention", "forward", l, h ".attn", "ATTENTION", "attention",
                "16,1024,2304", 2 * T * 1024 * C, 8 * T * C, 131, "mma")
        else {
            matmul(b "attention/scores", "forward", l, h ".attn.scores", 192 * 1024, 1024, 64, 190)
            run(b "attention/softmax", "forward", l, h ".attn.softmax", "SCORE_SOFTMAX", "softmax",
                "16,12,1024,1024", 1e9, 8e8, 330, "registers")
            matmul(b "attention/weighted sum", "forward", l, h ".attn.weighted_sum", 192 * 1024,
                64, 1024, 180)
        }
        matmul(b "attention/projection", "forward", l, h ".attn.c_proj", T, C, C, 37)
        run(b "norm 2", "forward", l, h ".ln_2", "ADD_LAYERNORM", "norms", "16,1024,768", 8 * T * C,
            8 * T * C, 21, "registers")
        matmul(b "MLP/up", "forward", l, h ".mlp.c_fc", T, 4 * C, C, 120)
        matmul(b "MLP/down", "forward", l, h ".mlp.c_proj", T, C, 4 * C, 105)
    }
    matmul("head", "forward", -1, "lm_head", T, 50304, C, 1900)
    run("loss", "forward", -1, "loss", "CROSS_ENTROPY_BOTH", "loss", "16384,50304", 5 * T * 50304,
        4 * T * 50304, 900, "held")
    grad("head", -1, "lm_head", T, 50304, C, 1800)
    for (l = blocks - 1; l >= 0; l--) {
        b = "block " l "/"; h = "h." l
        grad(b "MLP/down", l, h ".mlp.c_proj", T, C, 4 * C, 110)
        grad(b "MLP/up", l, h ".mlp.c_fc", T, 4 * C, C, 112)
        run(b "norm 2", "backward", l, h ".ln_2", "LAYERNORM_GRAD_ADD", "norms", "16,1024,768",
            12 * T * C, 10 * T * C, 40, "registers")
        grad(b "attention/projection", l, h ".attn.c_proj", T, C, C, 36)
        if (flash == "true")
            run(b "attention/flash attention", "backward", l, h ".attn", "ATTENTION_GRAD",
                "attention", "16,1024,2304", 5 * T * 1024 * C, 16 * T * C, 371, "mma_sums")
        else {
            grad(b "attention/weighted sum", l, h ".attn.weighted_sum", 192 * 1024, 64, 1024, 185)
            run(b "attention/softmax", "backward", l, h ".attn.softmax", "SCORE_SOFTMAX_GRAD",
                "softmax", "16,12,1024,1024", 1e9, 1.2e9, 420, "registers")
            grad(b "attention/scores", l, h ".attn.scores", 192 * 1024, 1024, 64, 185)
        }
        grad(b "attention/q, k, v", l, h ".attn.c_attn", T, 3 * C, C, 102)
        run(b "norm 1", "backward", l, h ".ln_1", "LAYERNORM_GRAD_ADD", "norms", "16,1024,768",
            12 * T * C, 10 * T * C, 40, "registers")
    }
    run("embeddings", "backward", -1, "wte", "EMBED_GRAD", "embeddings", "50304,768", T * C,
        8 * T * C, 75, "scan")
    run("norm of the gradient", "update", -1, "grad_norm", "SUM_SQUARES", "optimizer", "124475904",
        2.5e8, 5e8, 130, "two stages")
    run("AdamW", "update", -1, "optimizer", "ADAMW_COPY", "optimizer", "124475904", 2e9, 3.7e9, 960,
        "vector")

    step = now / 1e3
    stats = sprintf("{\"n\":20,\"median\":%.7g,\"mean\":%.7g,\"std\":%.7g,\"min\":%.7g," \
        "\"max\":%.7g,\"p95\":%.7g}",
                    step, step, step * .004, step * .99, step * 1.02, step * 1.01)
    printf "{\"v\":1,\"version\":\"0.1.0\",\"date\":\"2026-11-21T20:00:00Z\",\"device\":\"cuda\"," \
        "\"config\":{},\"plan\":{\"tokens_per_step\":12288},\n"
    printf "\"machine\":{\"gpu\":\"NVIDIA H200\",\"isa\":\"compute capability 9.0\"," \
        "\"library\":\"cuBLASLt 13.0.1\",\"threads\":1," \
        "\"date\":\"2026-11-20T08:00:00Z\",\"quick\":false,\"others\":0,\"l2_bytes\":62914560," \
        "\"products\":[{\"dtype\":\"f32\",\"flops_per_s\":5.1e13},{\"dtype\":\"tf32\"," \
        "\"flops_per_s\":4.1e14}," \
        "{\"dtype\":\"bf16\",\"flops_per_s\":8e14}],\"copies\":[{\"bytes_per_thread\":16777216," \
        "\"bytes_per_s\":8.1e12}," \
        "{\"bytes_per_thread\":1073741824,\"bytes_per_s\":4e12}]},\n"
    printf "\"threads\":0,\"times_by\":\"cupti\",\"times_why\":null," \
        "\"traced_by\":\"CUPTI 13.0.1\",\"replay\":true,\"warmup\":10,\"steps\":20,\n"
    printf "\"step_ms\":%s,\"plain_step_ms\":%s,\"overhead\":0.012,\"host_ms_per_step\":0.31," \
        "\"dropped\":%d,\"unmatched\":0,\n",
        stats, stats, dropped
    printf "\"dropped_why\":%s,\n", dropped ? "\"the library had no space <for> them\"" : "null"
    printf "\"phase_ms\":{\"forward\":%.7g,\"backward\":%.7g,\"update\":%.7g},\n",
        in_phase["forward"] / 1e3,
        in_phase["backward"] / 1e3, in_phase["update"] / 1e3
    printf "\"idle\":{\"gaps_per_step\":%d,\"ms_per_step\":%.7g,\"phases\":{\"forward\":%.7g," \
        "\"backward\":%.7g,\"update\":%.7g}},\n",
        rows, idle / 1e3, idle_in["forward"] / 1e3, idle_in["backward"] / 1e3,
        idle_in["update"] / 1e3
    printf "\"words\":[{\"about\":\"top kernel\"," \
        "\"text\":\"in forward it is </script> & stays so\"}],\n\"rows\":["
    for (i = 0; i < rows; i++) printf "%s%s", i ? ",\n" : "", row[i]
    printf "],\n\"timeline\":{\"step\":3,\"fields\":\"row, start_us, end_us, lane\",\"moments\":["
    for (i = 0; i < rows; i++) printf "%s%s", i ? "," : "", moment[i]
    printf "]}"
    if (memory == "true") {
        printf ",\n\"memory\":{\"total_bytes\":%.0f,\"parts\":[\"weights\",\"optimizer\"," \
            "\"saved\"]," \
            "\"peak\":%d,\"moments\":[", 1.5e9 + used[peak], peak
        for (i = 0; i < rows; i++) printf "%s[%d,%.0f,%.0f,%.0f]", i ? "," : "", i, 5e8, 1e9,
            used[i]
        printf "]}"
    }
    printf "}\n"
}' >"$file"
