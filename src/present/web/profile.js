"use strict";
/* Sections about profiles: where the time goes, what changed, one step, tables, rooflines. */
(() => {
const element = strobe.element;

/* --- the data, as objects ----------------------------------------------------------------------- */

/* A column of texts or objects has each value once. */
const cellOf = (column, i) => column.of ? column.of[column.at[i]] : column[i];

/* The fields of the file (docs/PROFILE.md), those of its parts among them. */
function rowsOf({rows: columns, kernels}, families) {
    return columns.kernel_of.map((kernel, i) => {
        const row = Object.fromEntries(Object.entries(columns).map(([field, column]) => [field, cellOf(column, i)]));
        const family = families.indexOf(row.family);
        return {...row, ...row.run_ms, ...row.counters, ...row.launch, kernel, name: kernels[kernel], variant: row.kernel, layer: row.layer ?? -1,
            family: family < 0 ? families.length - 1 : family, ms: row.ms_per_step, work_ms: row.work_ms_per_step, floor: (row.floor_ms || 0) * (row.per_step || 0)};
    });
}

const PART_NAMES = {optimizer: "optimizer state", copies: "copies of weights", saved: "saved for backward", forward: "forward temporaries", backward: "backward temporaries", update: "update temporaries"};

/* Planned memory while each row runs, from where the row is first in the timeline. */
function memoryOf({parts, peak, moments: columns}, rows, moments) {
    const starts = new Map(moments.map(m => [m.row, m.start]).reverse());
    if (!parts.length || !columns.length) return null;
    return {parts: parts.map(id => [id, PART_NAMES[id] || id]), peak, columns: columns.map(([row, ...bytes]) => ({row: rows[row], at: starts.get(rows[row]), bytes}))};
}

function unpack(packed, index, runs, families) {
    const rows = rowsOf(packed, families);
    const moments = packed.timeline.moments.map(([row, start, end, lane]) => ({row: rows[row], start, end, lane}));
    const memory = memoryOf(packed.memory, rows, moments);
    const idle = packed.idle || {}, machine = packed.machine || {}, idleOf = idle.phases || {};
    const phases = Object.entries(packed.phase_ms).map(([name, ms]) => ({name, ms, idle: idleOf[name] || 0}));
    const facts = {
        step: packed.step_ms || {}, plain_ms: (packed.plain_step_ms || {}).median, host_ms: packed.host_ms_per_step, others: packed.others_busy,
        idle_ms: idle.ms_per_step || 0, gaps: idle.gaps_per_step, answers: packed.words.map(word => [word.about, word.text]),
        machine: machine.gpu || machine.cpu, machine_date: machine.date, copies: packed.ceilings, products: (machine.products || []).map(x => [x.dtype, x.flops_per_s]),
    };
    const whole = facts.idle_ms + rows.reduce((sum, row) => sum + row.ms, 0);
    return Object.assign({}, packed, facts, {rows, memory, phases, moments, whole, index, color: packed.run >= 0 ? packed.run : runs + index});
}

const swatch = p => strobe.swatch(p.color);
const nameOf = p => element("span", {class: "name"}, swatch(p), p.name);
const familySwatch = family => element("span", {class: "swatch", style: {"--c": `var(--family-${family})`}});
const percent = share => (100 * share).toFixed(1);

/* --- where a step goes -------------------------------------------------------------------------- */

const IDLE = "idle";

/* Milliseconds per step by family, with idle time, in the order of the list. */
function familyTimes(p, families) {
    const ms = families.map(() => 0);
    for (const row of p.rows) ms[row.family] += row.ms;
    ms[families.indexOf(IDLE)] += p.idle_ms;
    return ms;
}

function familyBars(profiles, families) {
    const most = Math.max(...profiles.map(p => p.whole));
    return element("div", {class: "bars"}, ...profiles.map(p => {
        const fill = element("div", {class: "fill", style: {width: `${100 * p.whole / most}%`, background: "none"}});
        familyTimes(p, families).forEach((ms, family) => {
            if (!(ms > 0)) return;
            const share = ms / p.whole;
            fill.append(element("i", {
                style: {width: `${100 * share}%`, background: `var(--family-${family})`},
                title: `${families[family]}: ${strobe.short(ms)} ms, ${percent(share)} %`,
            }, share * p.whole / most > .055 ? element("span", {class: family === families.indexOf(IDLE) ? "dim" : ""}, percent(share) + " %") : null));
        });
        return strobe.barRow(p.name, swatch(p), element("div", {class: "track tall"}, fill), strobe.short(p.whole) + " ms");
    }));
}

function familyKey(profiles, families) {
    const seen = families.map((name, family) => profiles.some(p => familyTimes(p, families)[family] > 0));
    return element("div", {class: "key"}, ...families.flatMap((name, family) => seen[family] ? [element("span", {}, element("i", {style: {background: `var(--family-${family})`}}), name)] : []));
}

const TAKEN_BY = {clock: "host clock around each kernel", events: "device events after each kernel", cupti: "the record of the device (CUPTI)"};

/* Facts about a profile that its summary may lack: [word, help, profile => text]. The summary in the
 * file takes precedence. */
const FACTS = [
    ["step", "median of the profiled steps", p => isNumber(p.step.median) ? `${strobe.short(p.step.median)} ms, the median; mean ${strobe.short(p.step.mean)} ms ± ${strobe.short(p.step.std) || "0"}` + (isNumber(p.step.n) ? `, ${p.step.n} steps` : "") : null],
    ["overhead", "cost of profiling", p => isNumber(p.plain_ms) && isNumber(p.overhead) ? `${strobe.short(100 * p.overhead)} %: a step takes ${strobe.short(p.plain_ms)} ms without profiling` : null],
    ["floor", "sum of the kernels' lower bounds: FLOPs and bytes at the measured peaks", p => { const floor = p.rows.reduce((sum, row) => sum + row.floor, 0); return floor > 0 ? `${strobe.short(floor)} ms; a step takes ${strobe.short(p.whole / floor)} times as long on average` : null; }],
    ["idle", "time in which nothing ran", p => `${strobe.short(p.idle_ms)} ms` + (isNumber(p.gaps) ? ` in ${strobe.thousands(p.gaps)} gaps` : "")],
    ["arithmetic", "FLOPs of a step, from the plan", p => { const flops = p.rows.reduce((sum, row) => sum + (row.flops || 0) * (row.per_step || 0), 0); return flops > 0 ? `${strobe.withUnit(flops, "FLOP")}, ${strobe.withUnit(flops / p.whole * 1e3, "FLOP/s")}` : null; }],
    ["kernels", "executions per step", p => strobe.thousands(p.rows.reduce((sum, row) => sum + (row.per_step || 0), 0)) + " per step"],
    ["replay", "whether steps replay a captured graph", p => p.replay ? "steps replay a captured graph" : null],
    ["times by", "how they were measured", p => p.times_by ? (p.traced_by || TAKEN_BY[p.times_by] || p.times_by) + (p.times_why ? `: ${p.times_why}` : "") : null],
    ["peaks", "measured peaks, from which the floors are computed", p => p.machine ? [...p.products, ...p.copies].map(([name, rate], i) => `${name} ${strobe.withUnit(rate, i < p.products.length ? "FLOP/s" : "B/s")}`).join(", ") + `; ${p.machine}` + (p.machine_date ? `, measured ${p.machine_date.slice(0, 10)}` : "") : null],
    ["date", "date of the profile", p => p.date && p.date.slice(0, 16).replace("T", " ")],
];

function factsTable(profiles) {
    const summary = new Map();
    for (const p of profiles) for (const [about] of p.answers) summary.set(about, {word: about, texts: profiles.map(() => null)});
    profiles.forEach((p, i) => p.answers.forEach(([about, text]) => { summary.get(about).texts[i] = text; }));
    const known = FACTS.filter(([word]) => !summary.has(word)).map(([word, help, read]) => ({word, help, texts: profiles.map(read)}));
    const rows = [...summary.values(), ...known].filter(row => row.texts.some(Boolean));
    return element("div", {class: "scroll"}, element("table", {class: "plain facts-of"},
        profiles.length > 1 ? element("thead", {}, element("tr", {}, element("th", {}), ...profiles.map(p => element("th", {}, nameOf(p))))) : null,
        element("tbody", {}, ...rows.map(row => element("tr", {}, element("th", {title: row.help}, row.word), ...row.texts.map(text => element("td", {class: text ? "" : "none"}, text || "–")))))));
}

function warningsOf(p) {
    const why = p.dropped_why ? ` (${p.dropped_why})` : "";
    return [
        p.dropped > 0 ? `${p.name}: ${strobe.thousands(p.dropped)} device activities were dropped, so their time is in no row${why}.` : null,
        p.others ? `${p.name}: other programs kept ${strobe.short(p.others)} processors busy, so times may be longer or vary.` : null,
        p.unmatched > 0 ? `${p.name}: ${strobe.thousands(p.unmatched)} device activities could not be assigned to a node${why}.` : null,
    ].filter(Boolean);
}

function stepSection(page) {
    const {profiles, families, section} = page;
    const warnings = profiles.flatMap(warningsOf);
    section("Where the time of a step goes", "Mean time per step by family of kernels. Idle time is time without a kernel, so the parts add up to the step.",
        familyBars(profiles, families), familyKey(profiles, families),
        warnings.length ? element("ul", {class: "notes"}, ...warnings.map(text => element("li", {}, text))) : null,
        element("h3", {}, "Summary"), factsTable(profiles));
}

/* --- what changed ------------------------------------------------------------------------------- */

const signed = x => (x > 0 ? "+" : "") + strobe.minus(x.toFixed(Math.abs(x) < 100 ? 3 : 2));
const count = x => x > 0 ? (Number.isInteger(x) ? strobe.thousands(x) : strobe.short(x)) : null;
const fixed = x => isNumber(x) ? x.toFixed(x < 100 ? 3 : 2) : null;

function changeRows(change) {
    return change.rows.map(([kind, place, family, before, after, verdict]) => ({
        kind, place, family, verdict,
        before: before && before[0], after: after && after[0],
        msBefore: before ? before[1] : null, msAfter: after ? after[1] : null,
        nBefore: before ? before[2] : null, nAfter: after ? after[2] : null,
        difference: (after ? after[1] : 0) - (before ? before[1] : 0),
    }));
}

/* A bar to the left if the time is shorter, to the right if it is longer. */
function differenceCell(row, most) {
    const share = most > 0 ? Math.abs(row.difference) / most * 50 : 0;
    return element("span", {class: "diverging"},
        element("span", {}, element("i", {class: row.difference < 0 ? "less" : "more", style: {width: `${share}%`, [row.difference < 0 ? "right" : "left"]: "50%"}})),
        element("span", {}, signed(row.difference)));
}

function changesSection(page) {
    const {profiles, changes, families, section} = page;
    if (!changes.length) return;
    let rows = [], most = 0, kind = "all";
    const before = profiles[0];
    const columns = after => [
        {id: "change", title: "change", help: "kind of change", value: row => row.kind, cell: row => element("span", {class: "kind " + row.kind.replace(" ", "-")}, row.kind)},
        {id: "place", title: "where", help: "part of the model, over all its blocks", kind: "first", value: row => row.place, cell: row => element("span", {title: `${row.kind}, ${families[row.family]}: ${row.place}`}, familySwatch(row.family), strobe.middleCut(row.place))},
        {id: "difference", title: "difference, ms", help: "per step, after minus before", number: true, value: row => row.difference, cell: row => differenceCell(row, most)},
        ...(rows.some(row => row.verdict) ? [{id: "verdict", title: "verdict", help: "faster, slower, same or cannot tell, by one rule (docs/MEASURING.md)", value: row => row.verdict || null}] : []),
        {id: "ms_before", title: before.name + ", ms", help: "per step", number: true, value: row => row.msBefore, cell: row => fixed(row.msBefore)},
        {id: "ms_after", title: after.name + ", ms", help: "per step", number: true, value: row => row.msAfter, cell: row => fixed(row.msAfter)},
        {id: "n_before", title: "× before", help: "executions per step", number: true, value: row => row.nBefore || null, cell: row => count(row.nBefore)},
        {id: "n_after", title: "× after", help: "executions per step", number: true, value: row => row.nAfter || null, cell: row => count(row.nAfter)},
        {id: "kernel", title: "kernel", kind: "kernel", help: "before → after, if they differ", value: row => row.after || row.before, cell: row => row.before && row.after && row.before !== row.after ? `${row.before} → ${row.after}` : row.after || row.before},
    ];
    const table = strobe.sortTable(columns(profiles[changes[0].after]), {
        sort: null, most: 25, noun: "lines", placeholder: "filter: softmax backward", words: row => `${row.kind} ${row.place} ${row.before} ${row.after} ${families[row.family]}`,
        foot: shown => {
            const sum = key => shown.reduce((total, row) => total + (row[key] || 0), 0);
            return {place: shown.length === rows.length ? "step" : "sum of these", difference: signed(sum("difference")), ms_before: fixed(sum("msBefore")), ms_after: fixed(sum("msAfter"))};
        },
    });
    const words = element("p", {class: "lead"});
    const kinds = element("span", {});
    const draw = () => table.show(kind === "all" ? rows : rows.filter(row => row.kind === kind), {});
    function choose(change) {
        rows = changeRows(change);
        most = Math.max(...rows.map(row => Math.abs(row.difference)));
        words.textContent = change.words.replace(/ -(?=\d)/g, " −");
        const known = [...new Set(rows.map(row => row.kind))];
        kind = "all";
        kinds.replaceChildren(strobe.segments([["all", "all"], ...known.map(k => [k, k])], kind, k => { kind = k; draw(); }));
        table.show(rows, {columns: columns(profiles[change.after]), sort: null});
    }
    const chooser = changes.length > 1 ? strobe.segments(changes.map(c => [c, profiles[c.after].name]), changes[0], choose) : null;
    choose(changes[0]);
    section("What changed", words,
        element("div", {class: "controls"}, chooser, kinds, table.filter, table.count), element("div", {class: "wide", id: "changes"}, table.node));
}

/* --- tables ------------------------------------------------------------------------------------- */

/* How rows are grouped: [id, title, noun, row => key, row => name]. */
const BY = [
    ["kernel", "Kernel", "kernels", row => row.kernel, row => row.name],
    ["op", "Operator", "operators", row => row.op || row.variant, row => row.op || row.variant],
    ["family", "Family", "families", row => row.family, (row, families) => families[row.family]],
    ["layer", "Layer", "layers", row => row.layer >= 0 ? row.layer : row.phase === "update" ? "update" : row.range[1] || row.phase, row => row.layer >= 0 ? `block ${row.layer}` : row.phase === "update" ? "update" : row.range[1] || row.phase],
    ["phase", "Phase", "phases", row => row.phase, row => row.phase],
    ["range", "Range", "ranges", null, null],
    ["row", "Node", "rows", (row, families, i) => i, row => `${row.scope || row.range.join(" / ")}: ${row.name}`],
];

function newGroup(name, depth, path) {
    return {name, depth, path, ms: 0, work: 0, runs: 0, n: 0, sum: 0, squares: 0, min: Infinity, max: -Infinity, medians: [], flops: 0, bytes: 0, floor: 0, bounds: {}, longest: -1, words: new Set(),
        counted: 0, read: 0, written: 0, moved: 0, planned: 0, shares: {}};
}

/* Hardware counters; shares are weighted by time. */
function addCounters(group, row) {
    const runs = row.per_step || 0;
    group.counted += row.ms;
    group.read += runs * row.dram_read;
    group.written += runs * row.dram_written;
    if (row.bytes > 0) {
        group.moved += runs * row.dram_of_node;
        group.planned += runs * row.bytes;
    }
    for (const key in row.counters) group.shares[key] = (group.shares[key] || 0) + row.ms * (row.counters[key] ?? NaN);
}

function addRow(group, row, families) {
    group.ms += row.ms;
    group.work += row.work_ms;
    group.runs += row.per_step || 0;
    group.flops += (row.flops || 0) * (row.per_step || 0);
    group.bytes += (row.bytes || 0) * (row.per_step || 0);
    group.floor += row.floor;
    if (row.n > 0 && isNumber(row.mean)) {
        group.n += row.n;
        group.sum += row.n * row.mean;
        group.squares += row.n * (row.mean ** 2 + (row.std || 0) ** 2);
        group.min = Math.min(group.min, row.min);
        group.max = Math.max(group.max, row.max);
        group.medians.push([row.median, row.n]);
    }
    if (isNumber(row.dram_read)) addCounters(group, row);
    if (row.bound) group.bounds[row.bound] = (group.bounds[row.bound] || 0) + row.work_ms;
    if (row.ms > group.longest) { group.longest = row.ms; group.family = row.family; group.launch = isNumber(row.blocks) ? row : null; }
    for (const word of [row.name, row.scope, row.types, row.device_kernel, families[row.family], row.bound, row.phase, ...row.range]) if (word) group.words.add(word);
}

/* The weighted median of the rows' medians. */
function middle(medians) {
    medians.sort((a, b) => a[0] - b[0]);
    let left = medians.reduce((sum, [, n]) => sum + n, 0) / 2;
    for (const [median, n] of medians) if ((left -= n) <= 0) return median;
    return null;
}

function closeGroup(group, whole) {
    const mean = group.n ? group.sum / group.n : null;
    return Object.assign(group, {
        share: group.ms / whole, mean, median: middle(group.medians),
        std: group.n > 1 ? Math.sqrt(Math.max(group.squares / group.n - mean ** 2, 0)) : null,
        min: group.n ? group.min : null, max: group.n ? group.max : null,
        bound: Object.keys(group.bounds).sort((a, b) => group.bounds[b] - group.bounds[a])[0] || null,
        intensity: group.flops && group.bytes ? group.flops / group.bytes : null,
        rate: group.flops && group.work ? group.flops / group.work * 1e3 : null,
        speed: group.bytes && group.work ? group.bytes / group.work * 1e3 : null,
        gap: group.floor > 0 ? group.work / group.floor : null,
        beyond: group.planned > 0 ? group.moved / group.planned : null,
        shares: Object.fromEntries(Object.entries(group.shares).map(([key, sum]) => [key, sum / group.counted])),
        text: [group.name, ...group.words].join(" "),
    });
}

function groupsOf(p, by, phase, families) {
    const [, , , key, name] = BY.find(([id]) => id === by);
    const groups = new Map();
    const into = (k, label, depth, path, row) => {
        if (!groups.has(k)) groups.set(k, newGroup(label, depth, path));
        addRow(groups.get(k), row, families);
    };
    p.rows.forEach((row, i) => {
        if (phase !== "step" && row.phase !== phase) return;
        if (by !== "range") return into(key(row, families, i), name(row, families), 0, null, row);
        row.range.forEach((word, depth) => {
            const path = row.range.slice(0, depth + 1).join(" / ");
            into(path, word, depth, path, row);
        });
    });
    const phases = p.phases.filter(x => phase === "step" || x.name === phase);
    const idle = phases.length || phase !== "step" ? phases.reduce((sum, x) => sum + x.idle, 0) : p.idle_ms;
    const list = by === "range" ? nested([...groups.values()]) : [...groups.values()];
    const whole = idle + list.filter(g => g.depth === 0).reduce((sum, g) => sum + g.ms, 0);
    list.push(Object.assign(newGroup(IDLE, 0, IDLE), {ms: idle, family: families.indexOf(IDLE), idle: true}));
    return list.map(group => closeGroup(group, whole));
}

/* Each range before the ranges inside it. */
function nested(list) {
    const inside = (path, depth) => list.filter(g => g.depth === depth && (depth === 0 || g.path.startsWith(path + " / ")))
        .flatMap(g => [g, ...inside(g.path, depth + 1)]);
    return inside("", 0);
}

function counterColumns(groups, shares) {
    const bytes = strobe.unitFor(groups.flatMap(g => [g.read, g.written]), "B");
    const amount = (id, title, help) => ({id, title, help, number: true, value: g => g.counted ? g[id] : null, cell: g => g.counted ? strobe.short(g[id] / bytes.divisor) : null});
    const share = ([id, title, help]) => ({id, title, help, number: true, value: g => g.shares[id] ?? null, cell: g => isNumber(g.shares[id]) ? percent(g.shares[id]) : null});
    return [
        amount("read", `read ${bytes.unit}`, "bytes of a step read from DRAM, by hardware counters"), amount("written", `written ${bytes.unit}`, "bytes of a step written to DRAM, by hardware counters"),
        {id: "beyond", title: "× plan", help: "DRAM bytes of all kernels of an operator / the plan's bytes; below 1 where L2 had them", number: true, value: g => g.beyond, cell: g => strobe.short(g.beyond)},
        ...shares.map(share),
    ];
}

/* How a kernel is launched; a line of several nodes shows the launch of the node that takes longest. */
function launchColumns() {
    const number = (id, title, help, cell = count, value = row => row[id]) => {
        const known = g => g.launch && isNumber(value(g.launch)) ? value(g.launch) : null;
        return {id, title, help, number: true, value: known, cell: g => known(g) === null ? null : cell(known(g))};
    };
    const bytes = (id, title, help) => number(id, title, help, x => x ? count(x) : "0");
    return [
        number("sm_warps", "warps/SM", "warps that an SM holds at once"),
        number("occupancy", "occupancy %", "these warps / the most that an SM can hold", percent, row => isNumber(row.sm_warps) ? row.sm_warps / row.sm_warps_most : null),
        {id: "limit", title: "limit", help: "what allows no more blocks on an SM", value: g => g.launch && g.launch.limit},
        number("waves", "waves", "blocks / blocks that the GPU holds at once", strobe.short), number("tail", "tail %", "share of the last wave that is idle", percent),
        number("blocks", "blocks", "of the grid"), number("threads", "threads", "of a block"), number("sm_blocks", "blocks/SM", "blocks that an SM holds at once"),
        number("registers", "registers", "of a thread"), bytes("static_bytes", "static B", "static shared memory of a block"), bytes("dynamic_bytes", "dynamic B", "dynamic shared memory of a block"),
    ];
}

function columnsFor(by, groups, shown, shares) {
    const all = key => groups.map(g => g[key]);
    const most = Math.max(...all("share"), 1e-9);
    const flops = strobe.unitFor(all("flops"), "FLOP"), bytes = strobe.unitFor(all("bytes"), "B");
    const rate = strobe.unitFor(all("rate"), "FLOP/s"), speed = strobe.unitFor(all("speed"), "B/s");
    const in_ = (scale, key) => ({number: true, value: g => g[key] || null, cell: g => g[key] ? strobe.short(g[key] / scale.divisor) : null});
    const us = (id, title, help) => ({id, title, help, number: true, value: g => g[id], cell: g => isNumber(g[id]) ? strobe.short(1e3 * g[id]) : null});
    const tree = by === "range";
    const columns = [
        {id: "name", title: BY.find(([id]) => id === by)[1].toLowerCase(), kind: "first kernel", help: "name; the color shows the family", value: g => tree ? g.path : g.name,
            cell: g => element("span", {class: "what", title: g.path || g.name, style: {"--depth": g.depth}}, familySwatch(g.family), tree ? element("span", {class: "tree"}, g.name) : strobe.middleCut(g.name))},
        {id: "share", title: "time %", help: "share of the measured time of the phase or step; with the row of idle time, all rows add up to 100 %", number: true, value: g => g.share,
            cell: g => element("span", {class: "shared"}, element("i", {style: {"--share": g.share / most, "--c": `var(--family-${g.family})`}}), element("span", {}, percent(g.share)))},
        {id: "ms", title: "ms", help: "mean time per step", number: true, value: g => g.ms, cell: g => fixed(g.ms)},
        {id: "gap", title: "× floor", help: "time / floor", number: true, value: g => g.gap, cell: g => strobe.short(g.gap)},
        {id: "floor", title: "floor ms", help: "lower bound per step: the longer of FLOPs and bytes at the measured peaks", number: true, value: g => g.floor || null, cell: g => g.floor > 0 ? fixed(g.floor) : null},
        {id: "bound", title: "bound by", help: "the resource that limits it, for most of its time", value: g => g.bound},
        Object.assign({id: "rate", title: rate.unit, help: "achieved"}, in_(rate, "rate")),
        Object.assign({id: "speed", title: speed.unit, help: "achieved"}, in_(speed, "speed")),
        {id: "intensity", title: "FLOP/B", help: "arithmetic intensity", number: true, value: g => g.intensity, cell: g => strobe.short(g.intensity)},
        Object.assign({id: "flops", title: flops.unit, help: "per step"}, in_(flops, "flops")),
        Object.assign({id: "bytes", title: bytes.unit, help: "per step, with each input and output counted once"}, in_(bytes, "bytes")),
        {id: "runs", title: "instances", help: "executions per step", number: true, value: g => g.runs || null, cell: g => count(g.runs)},
    ];
    const some = ids => columns.filter(c => ids.includes(c.id));
    if (shown === "counters") return [...some(["name", "share", "ms", "bound", "bytes", "runs"]), ...counterColumns(groups, shares)];
    if (shown === "launches") return [...some(["name", "share", "ms", "runs"]), ...["kernel", "row"].includes(by) ? launchColumns() : []];
    if (["layer", "phase", "range"].includes(by)) return columns;
    return [...columns, us("mean", "avg µs", "mean of one execution"), us("median", "med µs", "median of one execution; of several nodes, their weighted median"),
        us("min", "min µs", "shortest execution"), us("max", "max µs", "longest execution"), us("std", "σ µs", "standard deviation of an execution")];
}

function tablesSection(page) {
    const {families, section} = page, profiles = page.profiles.filter(p => p.rows.length);
    if (!profiles.length) return;
    const state = {profile: profiles[0], by: "kernel", phase: "step", shown: "work"};
    const table = strobe.sortTable([], {
        noun: "", placeholder: "filter: backward softmax", words: g => g.text,
        foot: shown => {
            const top = shown.filter(g => g.depth === 0), sum = key => top.reduce((total, g) => total + (g[key] || 0), 0);
            return {name: "sum", share: percent(sum("share")), ms: fixed(sum("ms")), floor: fixed(sum("floor")), gap: sum("floor") > 0 ? strobe.short(sum("ms") / sum("floor")) : "", runs: count(sum("runs"))};
        },
        draw: (tr, g, {sort}) => {
            if (g.idle) tr.classList.add("idle");
            /* In the order of the step the ranges are a tree; in any other order, show paths. */
            if (g.path && sort !== null) tr.querySelector(".tree, .what").textContent = g.path;
        },
    });
    const draw = keep => {
        const groups = groupsOf(state.profile, state.by, state.phase, families);
        const ordered = ["layer", "phase", "range"].includes(state.by);
        table.show(groups, {columns: columnsFor(state.by, groups, state.shown, page.shares), noun: BY.find(([id]) => id === state.by)[2], sort: ordered ? null : "ms", keep, most: state.by === "range" ? 80 : 30});
    };
    const phases = ["step", ...profiles[0].phases.map(x => x.name)];
    const set = key => value => { state[key] = value; draw(!["by", "shown"].includes(key)); };
    const has = field => profiles.some(p => p.rows.some(row => isNumber(row[field])));
    const choices = [["work", "times and work"], has("dram_read") && ["counters", "hardware counters"], has("blocks") && ["launches", "occupancy"]].filter(Boolean);
    section("Kernels, families, layers", "Click a heading to sort. Times in ms, FLOPs and bytes are per step; times in µs are per execution of a kernel. The floor is the time of the FLOPs and bytes at the measured peaks of this machine.",
        element("div", {class: "controls"},
            profiles.length > 1 ? strobe.segments(profiles.map(p => [p, p.name]), profiles[0], set("profile")) : null,
            strobe.segments(BY.map(([id, title]) => [id, title]), "kernel", set("by")),
            strobe.segments(phases.map(x => [x, x]), "step", set("phase")),
            choices.length > 1 ? strobe.segments(choices, "work", set("shown")) : null, table.filter, table.count),
        element("div", {class: "wide", id: "rows"}, table.node));
    draw(false);
}

/* --- rooflines ---------------------------------------------------------------------------------- */

/* The program draws the picture, which is an image in the page; the page adds its tooltips and a ring
 * around the point under the mouse. */
function rooflineOf(p) {
    const {width} = p.points, points = p.points.points.map(([x, y, r, family, words]) => ({x, y, r, family, lines: words.split("\n")}));
    const image = strobe.picture(p.roofline, {alt: `roofline of ${p.name}`});
    const ring = element("div", {class: "ring", hidden: ""});
    const host = element("div", {class: "roofline"}, element("div", {class: "scroll"}, element("div", {class: "drawing"}, image, ring)));
    const tip = strobe.tip(host);
    const hide = () => { tip.hide(); ring.hidden = true; };
    image.addEventListener("pointermove", event => {
        const at = image.getBoundingClientRect(), scale = at.width / width, whole = host.getBoundingClientRect();
        const x = (event.clientX - at.left) / scale, y = (event.clientY - at.top) / scale;
        /* Small points are drawn on top, that is, last. */
        const point = points.findLast(q => Math.hypot(q.x - x, q.y - y) <= q.r + 2);
        if (!point) return hide();
        const set = (name, value) => ring.style.setProperty(name, `${value * scale}px`);
        set("left", point.x - point.r);
        set("top", point.y - point.r);
        set("width", 2 * point.r);
        set("height", 2 * point.r);
        ring.hidden = false;
        tip.show(point.lines, event.clientX - whole.left, event.clientY - whole.top, `var(--family-${point.family})`);
    });
    image.addEventListener("pointerleave", hide);
    return host;
}

function rooflineSection(page) {
    const drawn = page.profiles.filter(p => p.roofline);
    if (!drawn.length) return;
    page.section("Roofline", "Each point is a kernel with all its instances. Slopes are copy bandwidths and horizontal lines are matmul peaks, both measured on this machine. The distance of a point to them is the possible gain.",
        ...drawn.flatMap(p => [drawn.length > 1 ? element("h3", {}, nameOf(p)) : null, rooflineOf(p)]));
}

/* --- one step ----------------------------------------------------------------------------------- */

function timelineSection(page) {
    const shown = page.profiles.filter(p => p.moments.length || p.memory);
    if (!shown.length) return;
    const timeline = strobe.timeline(shown, page.families, nameOf);
    page.section("One step", "The step nearest to the median" + (shown.some(p => p.memory) ? ", and the planned memory below it" : "") + (shown.length > 1 ? "; all on the same scale." : "."),
        timeline.controls, element("div", {class: "wide"}, ...timeline.nodes), familyKey(shown, page.families), timeline.key,
        element("p", {class: "hint"}, "Drag to zoom, shift-drag to move, double-click to reset; Ctrl with the wheel and the keys + − ← → 0 work, too. Click a kernel to mark all its instances; the keys , and . step through them."));
    timeline.draw();
}

/* All sections. runs: number of runs; section: the function that adds a section to the page. */
strobe.profileSections = function (data, runs, section) {
    if (!data.profiles || !data.profiles.length) return;
    const page = {families: data.families, shares: data.shares, changes: data.changes, section};
    page.profiles = data.profiles.map((p, i) => unpack(p, i, runs, data.families));
    stepSection(page);
    changesSection(page);
    timelineSection(page);
    tablesSection(page);
    rooflineSection(page);
};
})();
