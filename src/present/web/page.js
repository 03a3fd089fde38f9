"use strict";
/* Builds the page from the JSON object in #data. Text is inserted as text, never as HTML. */
(() => {
let errors = 0;
addEventListener("error", () => { document.body.dataset.errors = ++errors; });
document.body.dataset.errors = 0;

const data = JSON.parse(document.getElementById("data").textContent);
const runs = data.runs, several = runs.length > 1, profiles = data.profiles, benches = data.benches;

/* --- small tools ------------------------------------------------------------------------------- */

const {element, segments, bytes, thousands, minus} = strobe;
const {swatch} = strobe;
const runName = (r, dots) => element("span", {class: "name"}, swatch(r, dots), runs[r].name);
const valueOf = (pairs, key) => (pairs.find(pair => pair[0] === key) || [])[1];
const setting = (run, key) => valueOf(run.settings, key), environment = (run, key) => valueOf(run.environment, key);
const runsHead = () => [element("th", {}, ""), ...runs.map((run, r) => element("th", {}, runName(r)))];

/* Decimals of a time; a spread has those of its median. */
const digits = x => x < 10 ? 3 : x < 100 ? 2 : x < 1000 ? 1 : 0;
function section(title, lead, ...children) {
    const node = element("section", {}, element("h2", {}, title), lead ? element("p", {class: "lead"}, lead) : null, ...children);
    document.body.append(node);
    return node;
}
function table(head, rows, kind) {
    return element("div", {class: "scroll"}, element("table", {class: kind},
        element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)));
}
const cell = (text, kind) => text === null || text === undefined
    ? element("td", {class: (kind || "") + " none"}, "–") : element("td", {class: kind || ""}, minus(text));

/* --- head -------------------------------------------------------------------------------------- */

function setTheme(theme) {
    document.documentElement.style.colorScheme = theme;
    strobe.redrawAll();
}
function isDark() {
    const scheme = document.documentElement.style.colorScheme;
    return scheme ? scheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
/* A page from a file may have no storage; then the choice lasts as long as the page. */
function remember(theme) { try { localStorage.setItem("strobe-theme", theme); } catch { /* none */ } }
function remembered() { try { return localStorage.getItem("strobe-theme"); } catch { return null; } }

/* For printing, the canvases are drawn light and narrow, and restored afterwards. */
function printing() {
    let scheme = "";
    const draw = (theme, width) => {
        document.documentElement.style.colorScheme = theme;
        for (const chart of strobe.charts) {
            chart.host.style.width = width;
            chart.graph.resize();
        }
        strobe.redrawAll();
    };
    addEventListener("beforeprint", () => {
        scheme = document.documentElement.style.colorScheme;
        draw("light", "17.5cm");
    });
    addEventListener("afterprint", () => draw(scheme, ""));
}

function masthead() {
    const toggle = element("button", {
        type: "button", title: "switch between light and dark",
        onclick: () => { const theme = isDark() ? "light" : "dark"; remember(theme); setTheme(theme); name(); },
    });
    const name = () => { toggle.textContent = isDark() ? "Light" : "Dark"; };
    const asked = location.hash.slice(1);
    const theme = asked === "dark" || asked === "light" ? asked : remembered();
    if (theme === "dark" || theme === "light") document.documentElement.style.colorScheme = theme;
    name();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { name(); strobe.redrawAll(); });
    printing();
    document.body.append(element("header", {class: "masthead"}, element("b", {}, "Strobe report"), toggle));
}

function heading() {
    const title = element("h1");
    const names = [...runs.map(run => run.name), ...profiles.filter(p => p.run < 0).map(p => p.name), ...benches.map(b => b.name)];
    if (names.length > 3) title.append(names.length + (runs.length ? " runs" : benches.length ? " results" : " profiles"));
    else names.forEach((name, i) => {
        if (i) title.append(element("i", {}, i + 1 < names.length ? ", " : " and "));
        title.append(name);
    });
    document.body.append(title);
    const models = new Set(profiles.map(p => p.model).filter(Boolean));
    if (models.size > 1)
        document.body.append(element("ul", {class: "notes"}, element("li", {}, "These profiles are of different models, so their steps do different work: "
            + profiles.filter(p => p.model).map(p => `${p.name}: ${p.model}`).join("; ") + ".")));
    if (!runs.length) return;
    document.body.append(element("p", {class: "facts"}, ...facts().flatMap(fact => [" ", element("span", {}, fact)])));
    if (data.verdict.length)
        document.body.append(element("ul", {class: "verdict" + (runs.length > 3 ? " many" : "")}, ...data.verdict.map(text => element("li", {}, text.replace(/\(-/g, "(−")))));
    if (data.notes.length)
        document.body.append(element("ul", {class: "notes"}, ...data.notes.map(text => element("li", {}, text))));
}

/* The facts that all runs share, in a line. */
function facts() {
    const shared = read => {
        const values = new Set(runs.map(read));
        return values.size === 1 ? [...values][0] : undefined;
    };
    const list = [];
    const parameters = shared(run => run.plan.parameters);
    if (isNumber(parameters)) list.push(thousands(parameters) + " parameters");
    const layers = shared(run => setting(run, "n_layer")), heads = shared(run => setting(run, "n_head"));
    const channels = shared(run => setting(run, "n_embd"));
    if (layers && heads && channels) list.push(`${layers} layers, ${heads} heads, ${channels} channels`);
    const dataset = shared(run => setting(run, "dataset"));
    if (dataset) list.push(dataset);
    const tokens = shared(run => run.plan.tokens_per_step);
    if (isNumber(tokens)) list.push(thousands(tokens) + " tokens per step");
    const machine = shared(run => {
        const device = environment(run, "device");
        return device && device !== "cpu" ? device : environment(run, "cpu");
    });
    if (machine) list.push(machine.trim());
    const date = shared(run => (environment(run, "date") || "").slice(0, 10));
    if (date) list.push(date);
    return list;
}

/* --- tables ------------------------------------------------------------------------------------ */

function differencesSection() {
    if (!several) return;
    const rows = list => list.map(d => element("tr", {}, element("th", {class: "mono"}, d.key), ...d.values.map(v => cell(v, "mono"))));
    const node = section("What differs", null);
    if (data.settings.length) node.append(table(runsHead(), rows(data.settings), "plain"));
    else node.append(element("p", {class: "lead"}, "All settings are the same."));
    if (data.environment.length)
        node.append(element("h3", {}, "Differences in the environment"), table(runsHead(), rows(data.environment), "plain"));
}

function headlineSection() {
    const columns = strobe.usedColumns(data.table);
    const head = columns.map(([c]) => element("th", {class: c.is_number ? "number" : "", title: c.help}, c.title));
    const rows = data.table.shown.map((texts, r) => element("tr", {}, ...columns.map(([c, i]) => {
        if (c.id === "run") return element("th", {}, runName(r));
        return cell(c.id === "speed" && texts[i] ? texts[i].replace("x", "×") : texts[i], c.is_number ? "number" : "");
    })));
    section("Results", several ? "Speed and memory are compared with the first run." : null, element("div", {class: "wide"}, table(head, rows, "results")));
}

/* --- curves ------------------------------------------------------------------------------------ */

/* The first earlier run with the same evaluations, whose curve lies under that of run r; -1: none. */
const curveOf = run => JSON.stringify([run.evals.iter, run.evals.val_loss, run.plan.tokens_per_step]);
const coincides = r => runs[r].evals.iter.length ? runs.findIndex((run, i) => i < r && curveOf(run) === curveOf(runs[r])) : -1;

/* A line under a chart: each run with its value at the mouse, and a button to hide it. same: r => the
 * earlier run whose curve is the same; -1: none. dots: the chart has no lines. */
function readout(valuesAt, toggle, same, dots) {
    const values = runs.map(() => element("span", {class: "values"}));
    const at = element("li", {class: "at"});
    const items = runs.map((run, r) => element("li", {}, element("button", {
        type: "button", "aria-pressed": "true", title: "show or hide",
        onclick: event => {
            const button = event.currentTarget, on = button.getAttribute("aria-pressed") !== "true";
            button.setAttribute("aria-pressed", on);
            toggle(r, on);
        },
    }, runName(r, dots), same && same(r) >= 0 ? element("span", {class: "values"}, "same curve as " + runs[same(r)].name) : null, values[r])));
    const show = x => {
        at.textContent = x === null ? "" : valuesAt(x, -1);
        runs.forEach((run, r) => { values[r].textContent = valuesAt(x, r); });
    };
    show(null);
    return {node: element("ul", {class: "readout"}, ...items, at), show};
}

function lossSection() {
    const lengths = runs.map(run => run.steps.iter.length ? run.steps.iter[run.steps.iter.length - 1] - run.steps.iter[0] : 0);
    const windows = [0, ...[1, 10, 100, 1e3, 1e4, 1e5].flatMap(p => [p, 2 * p, 5 * p]).filter(w => w >= 5 && w <= Math.max(...lengths) / 5)];
    const counted = runs.every(run => isNumber(run.plan.tokens_per_step));
    const state = {axis: counted && !strobe.sameTokens(runs) ? "tokens" : "iter", train: true, window: windows.findLast(w => w <= Math.min(...lengths) / 50), hidden: new Set()};
    const host = element("div", {class: "chart", id: "loss"});
    const timed = runs.every(run => run.steps.ms.some(isNumber));
    const word = () => ({iter: "iteration", tokens: "training tokens", seconds: "seconds of training"})[state.axis];
    const last = (kind, r, x) => {
        const series = chart.series.find(s => s.name === r + "." + kind);
        if (!series) return null;
        const i = x === null ? series.x.length - 1 : strobe.lastBefore(series.x, x);
        return i < 0 ? null : strobe.loss((kind === "train" ? runs[r].steps.loss : series.y)[i]);
    };
    let chart = {series: []};
    const line = readout((x, r) => {
        if (r < 0) return {iter: "at iteration " + thousands(x), tokens: "after " + thousands(x) + " tokens", seconds: "at " + x.toFixed(1) + " s"}[state.axis];
        const val = last("val", r, x), train = last("train", r, x);
        return [val && "val " + val, train && "train " + train].filter(Boolean).join(", ");
    }, (r, on) => { on ? state.hidden.delete(r) : state.hidden.add(r); redraw(); }, coincides);
    const name = () => {
        width.textContent = !state.window ? "none" : state.axis === "tokens" ? `mean of ${thousands(state.window * runs[0].plan.tokens_per_step)} tokens` : `mean of ${thousands(state.window)} iterations`;
    };
    const redraw = change => { chart.redraw(Object.assign({xlabel: word()}, change)); line.show(null); name(); };
    const smoothing = element("input", {
        type: "range", min: 0, max: windows.length - 1, step: 1, value: windows.indexOf(state.window), "aria-label": "window of the smoothing",
        oninput: event => { state.window = windows[+event.target.value]; redraw(); },
    });
    const width = element("output", {});
    const controls = element("div", {class: "controls"},
        timed || counted ? segments([["iter", "Iterations"], ...(counted ? [["tokens", "Tokens"]] : []), ...(timed ? [["seconds", "Time"]] : [])], state.axis, axis => { state.axis = axis; redraw({dateWindow: null}); }) : null,
        segments([[false, "Linear"], [true, "Logarithmic"]], false, log => redraw({logscale: log})),
        element("label", {}, element("input", {type: "checkbox", checked: "", onchange: event => { state.train = event.target.checked; redraw(); }}), "training loss"),
        element("label", {}, "smoothing", smoothing, width));
    const thinned = runs.some(run => run.steps.mean);
    section("Loss", element("span", {},
        element("i", {class: "curve-key"}), " validation, at each evaluation  ",
        element("i", {class: "curve-key thin"}), " training, each step pale, their mean darker; numbers are of single steps" + (several ? "; where curves coincide, the earlier run is the wider one" : "") +
        (thinned ? "; of a long run, the steps with the extremes are drawn" : "")),
        controls, host, line.node,
        element("p", {class: "hint"}, "Drag to zoom, shift-drag to move, double-click to reset."));
    chart = strobe.chart(host, ["loss", ""], () => strobe.lossSeries(runs, state), {
        xlabel: word(),
        highlightCallback: (event, x) => line.show(x),
        unhighlightCallback: () => line.show(null),
    });
    line.show(null);
    name();
}

function differenceSection() {
    if (!several || !strobe.differenceSeries(runs).length) return;
    const host = element("div", {class: "chart low", id: "difference"});
    section("Difference of validation loss",
        element("span", {}, "Each run minus ", runName(0), ", at shared evaluations" + (strobe.sameTokens(runs) ? "" : ", after equally many training tokens") + ". Below zero is better."), host,
        element("ul", {class: "readout"}, ...runs.slice(1).map((run, i) => element("li", {}, runName(i + 1), run.incomparable ? element("span", {class: "values"}, "not compared: " + run.incomparable)
            : coincides(i + 1) > 0 ? element("span", {class: "values"}, "same curve as " + runs[coincides(i + 1)].name)
            : coincides(i + 1) === 0 ? element("span", {class: "values"}, "no difference") : null))));
    strobe.chart(host, ["difference", ""], () => strobe.differenceSeries(runs), {
        xlabel: strobe.sameTokens(runs) ? "iteration" : "training tokens", underlayCallback: strobe.zeroLine, includeZero: true,
    });
}

/* --- bars -------------------------------------------------------------------------------------- */

function bars(title, rows) {
    return element("div", {}, element("h3", {}, title), element("div", {class: "bars"}, ...rows));
}
const percent = (x, whole) => (100 * x / whole).toFixed(2) + "%";

function bar(r, share, label, extra) {
    const track = element("div", {class: "track", style: {"--c": `var(${strobe.runVariable(r)})`}}, element("div", {class: "fill", style: {width: share}}), ...(extra || []));
    return strobe.barRow(runs[r].name, swatch(r), track, ...label);
}

function speedSection() {
    const known = runs.map((run, r) => r).filter(r => isNumber(runs[r].ms_median));
    if (!known.length) return;
    const fastest = Math.max(...known.map(r => runs[r].tokens_per_s || 0));
    const slowest = Math.max(...known.map(r => runs[r].ms_median + (runs[r].ms_std || 0)));
    const tokens = known.filter(r => isNumber(runs[r].tokens_per_s)).map(r => bar(r, percent(runs[r].tokens_per_s, fastest), [thousands(runs[r].tokens_per_s)]));
    const times = known.map(r => {
        const {ms_median: ms, ms_std: std} = runs[r];
        const whisker = isNumber(std) ? [element("div", {class: "whisker", style: {left: percent(Math.max(ms - std, 0), slowest), width: percent(ms + std - Math.max(ms - std, 0), slowest)}})] : [];
        return bar(r, percent(ms, slowest), [ms.toFixed(digits(ms)), isNumber(std) ? element("small", {}, " ± " + std.toFixed(digits(ms))) : "", " ms"], whisker);
    });
    const node = section("Speed", "Median over the iterations without the first ones; the whisker shows one standard deviation to each side.",
        element("div", {class: "pair"}, bars("Tokens per second", tokens), bars("Time of an iteration", times)));
    stepTimes(node);
    planShares(node);
}

/* Without counters: the plan's bytes and FLOPs of each step as shares of the measured peaks. */
function planShares(node) {
    const counted = runs.every(run => run.gauges.dram_active.some(isNumber));
    const known = runs.some(run => isNumber(run.plan_bytes) && isNumber(run.plan_flops) && isNumber(run.ms_median));
    if (counted || !known) return;
    const grid = element("div", {class: "pair"});
    node.append(element("p", {class: "lead"}, "Estimated from the plan, not counted: its bytes and FLOPs per second as a share of this machine's measured peaks. Bytes that caches serve are included."), grid);
    for (const [key, title] of [["plan_bytes", "Bytes of the plan, % of the speed of memory (estimate)"], ["plan_flops", "FLOPs of the plan, % of the peak of matmuls (estimate)"]]) {
        const host = element("div", {class: "chart low", id: key.replace("_", "-")});
        grid.append(element("div", {}, element("h3", {}, title), host));
        strobe.chart(host, ["share", " %"], () => strobe.planSeries(runs, key), {xlabel: "iteration", includeZero: true});
    }
}

/* The time of every step, which shows warm-up and noise. */
function stepTimes(node) {
    const host = element("div", {class: "chart low", id: "step-time"});
    if (runs.reduce((n, run) => n + run.steps.ms.filter(isNumber).length, 0) < 3) return;
    const state = {hidden: new Set()};
    const line = readout((x, r) => {
        if (r < 0) return "at iteration " + thousands(x);
        const {iter, ms} = runs[r].steps, i = x === null ? -1 : strobe.lastBefore(iter, x);
        return i >= 0 && isNumber(ms[i]) ? ms[i].toFixed(digits(ms[i])) + " ms" : "";
    }, (r, on) => { on ? state.hidden.delete(r) : state.hidden.add(r); chart.redraw({}); }, null, true);
    node.append(element("h3", {}, "Every step, in milliseconds"), host, line.node);
    const chart = strobe.chart(host, ["time", " ms"], () => strobe.stepTimeSeries(runs, state), {
        xlabel: "iteration", includeZero: true, highlightCallback: (event, x) => line.show(x), unhighlightCallback: () => line.show(null),
    });
}

const PARTS = [["weights", 1], ["gradients", .72], ["optimizer", .48], ["activations", .26]];

function memorySection() {
    const memory = r => Object.assign({peak: runs[r].peak}, runs[r].plan.memory);
    const known = runs.map((run, r) => r).filter(r => isNumber(memory(r).total));
    if (!known.length) return;
    const largest = Math.max(...known.flatMap(r => [memory(r).total, memory(r).peak || 0]));
    const mix = (r, share) => `color-mix(in srgb, var(${strobe.runVariable(r)}) ${100 * share}%, var(--grid))`;
    const rows = known.map(r => {
        const plan = memory(r), fill = element("div", {class: "fill", style: {width: percent(plan.total, largest), background: "none"}});
        const parts = PARTS.filter(([key]) => isNumber(plan[key]));
        for (const [key, share] of parts)
            fill.append(element("i", {title: `${key}: ${bytes(plan[key])}`, style: {width: percent(plan[key], plan.total), background: mix(r, share)}}));
        const track = element("div", {class: "track"}, fill,
            isNumber(plan.peak) ? element("div", {class: "peak", title: "measured peak: " + bytes(plan.peak), style: {left: `min(${percent(plan.peak, largest)}, 100% - 2px)`}}) : null);
        const words = parts.map(([key]) => `${key} ${bytes(plan[key])}`);
        if (isNumber(plan.peak)) words.push(`measured peak ${bytes(plan.peak)}`);
        const row = strobe.barRow(runs[r].name, swatch(r), track, bytes(plan.total));
        row.append(element("div", {class: "parts"}, words.join(" · ")));
        return row;
    });
    const grey = share => ({background: `color-mix(in srgb, var(--soft) ${100 * share}%, var(--grid))`});
    const key = element("div", {class: "key"},
        ...PARTS.map(([name, share]) => element("span", {}, element("i", {style: grey(share)}), name)),
        known.some(r => isNumber(memory(r).peak)) ? element("span", {}, element("i", {class: "tick"}), "measured peak of the process") : null);
    section("Memory", "Memory of the plan, known before the first step.", element("div", {class: "bars"}, ...rows), key);
}

/* --- telemetry of the device ------------------------------------------------------------------- */

function gaugesSection() {
    const known = kind => runs.some(run => run.gauges[kind].filter(isNumber).length > 1);
    const most = kind => Math.max(...runs.flatMap(run => run.gauges[kind].filter(isNumber)), 0);
    const shared = key => {
        const values = new Set(runs.map(run => run.gauges[key]).filter(isNumber));
        return values.size === 1 ? [...values][0] : null;
    };
    const limit = key => shared(key) === null ? "" : ` (${thousands(shared(key))} at most)`;
    const gpu = runs.some(run => environment(run, "device") && environment(run, "device") !== "cpu");
    const large = most("memory_bytes") >= 2 ** 30;
    const kinds = [
        {kind: "utilization", title: "Utilization, %", scale: 1, unit: "%", digits: 0, options: {includeZero: true}},
        {kind: "sm_active", title: "SMs with work, %", scale: 1, unit: "% of SMs", digits: 0, options: {includeZero: true}},
        {kind: "tensor_active", title: "Tensor cores active, %", scale: 1, unit: "% tensor cores", digits: 0, options: {includeZero: true}},
        {kind: "dram_active", title: "Bandwidth of the memory, %", scale: 1, unit: "% of bandwidth", digits: 0, options: {includeZero: true}},
        {kind: "memory_utilization", title: "Memory in use, % of the time", scale: 1, unit: "% memory in use", digits: 0, options: {includeZero: true}},
        {kind: "clock_mhz", title: `${gpu ? "SM clock" : "Clock"}, MHz${limit("clock_max")}`, scale: 1, unit: "MHz", digits: 0},
        {kind: "throttled", title: "Clock lowered by power, heat or another limit, % of the time", scale: .01, unit: "% slowed", digits: 0, options: {includeZero: true}},
        {kind: "power_w", title: `Power, W${limit("power_limit")}`, scale: 1, unit: "W", digits: 0},
        {kind: "memory_bytes", title: `Memory, ${large ? "GiB" : "MiB"}`, scale: large ? 2 ** 30 : 2 ** 20, unit: large ? "GiB" : "MiB", digits: large ? 2 : 1, options: {includeZero: true}},
    ].filter(k => known(k.kind) && (k.kind !== "throttled" || most(k.kind) > 0));
    if (!kinds.length) return;
    const state = {axis: "seconds", hidden: new Set()}, charts = [];
    const word = () => state.axis === "iter" ? "iteration" : "seconds, with evaluations";
    const line = readout((x, r) => {
        if (r < 0) return state.axis === "iter" ? "at iteration " + thousands(x) : "at " + x.toFixed(1) + " s";
        if (x === null) return "";
        const gauges = runs[r].gauges, at = gauges[state.axis];
        const i = Math.min(strobe.lastBefore(at, x) + (at.includes(x) ? 0 : 1), at.length - 1);
        const parts = kinds.filter(k => isNumber(gauges[k.kind][i])).map(k => (gauges[k.kind][i] / k.scale).toFixed(k.digits) + " " + k.unit);
        return parts.join(", ");
    }, (r, on) => { on ? state.hidden.delete(r) : state.hidden.add(r); redraw(); });
    const redraw = change => { charts.forEach(chart => chart.redraw(Object.assign({xlabel: word()}, change))); line.show(null); };
    const grid = element("div", {class: "pair"});
    section("The device during the run", (gpu ? "Telemetry of the GPU driver" : "Telemetry of the system") +
        "; each value covers the time since the previous one.",
        element("div", {class: "controls"}, segments([["seconds", "Time"], ["iter", "Iterations"]], "seconds", axis => { state.axis = axis; redraw({dateWindow: null}); })),
        grid, line.node);
    for (const k of kinds) {
        const host = element("div", {class: "chart low", id: "gauge-" + k.kind});
        grid.append(element("div", {}, element("h3", {}, k.title), host));
        charts.push(strobe.chart(host, ["value", " " + k.unit], () => strobe.gaugeSeries(runs, k.kind, k.scale, state), Object.assign({
            highlightCallback: (event, x) => line.show(x),
            unhighlightCallback: () => line.show(null),
        }, k.options, {xlabel: word()})));
    }
}

/* --- samples and details ----------------------------------------------------------------------- */

function samplesSection() {
    const known = runs.map((run, r) => r).filter(r => runs[r].samples && runs[r].samples.trim());
    if (!known.length) return;
    section("Samples", "Text generated at the end of the run.",
        element("div", {class: "samples"}, ...known.map(r => element("figure", {},
            element("figcaption", {}, runName(r)), element("pre", {tabindex: 0}, runs[r].samples.trim())))));
}

/* Keys of all runs, in the order of the first run that has them; rows that differ are marked. */
function pairsTable(kind, marked) {
    const keys = [...new Set(runs.flatMap(run => run[kind].map(pair => pair[0])))];
    const differing = new Set(marked.map(d => d.key));
    return table(runsHead(), keys.map(key => element("tr", {class: differing.has(key) ? "differs" : ""},
        element("th", {class: "mono"}, key), ...runs.map(run => cell(valueOf(run[kind], key), "mono")))), "plain");
}

const quoted = word => /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'";

function command(lines) {
    const pre = element("pre", {}, lines.join("\n"));
    const copy = element("button", {
        type: "button",
        onclick: async () => {
            getSelection().selectAllChildren(pre);
            try { await navigator.clipboard.writeText(pre.textContent); copy.textContent = "Copied"; } catch { copy.textContent = "Selected"; }
        },
    }, "Copy");
    return element("div", {class: "command"}, pre, copy);
}

function detailsSection() {
    const fold = (title, remark, content) => element("details", {}, element("summary", {}, title, element("small", {}, remark)), content);
    const again = runs.filter(run => run.settings.length).map(run => `strobe train ${quoted(run.dir + "/config.conf")} --out_dir=${quoted(run.dir.replace(/\/+$/, "") + "-again")}`);
    const made = [...profiles, ...benches].filter(x => x.command).map(x => x.command);
    const words = data.words.length ? data.words : [...runs.map(run => run.dir), ...profiles.filter(p => p.run < 0).map(p => p.path), ...benches.map(b => b.path)];
    const node = section("How to reproduce", null, command([...again, ...made, "strobe report " + words.map(quoted).join(" ")]));
    if (runs.some(run => run.settings.length))
        node.append(fold("Settings", "all keys" + (several && data.settings.length ? ", differences marked" : ""), pairsTable("settings", data.settings)));
    if (runs.some(run => run.environment.length))
        node.append(fold("Environment", "machine, program, libraries", pairsTable("environment", data.environment)));
}

function footer() {
    const last = runs[runs.length - 1], word = key => last && environment(last, key), version = word("version"), commit = word("commit");
    document.body.append(element("footer", {}, "Strobe" + (version ? " " + version : "") + (commit ? " (" + commit + ")" : "") +
        ". This page contains all its data and loads nothing. Curves by dygraphs, MIT licence, whose notice is in the source of this page."));
}

/* --- the page ---------------------------------------------------------------------------------- */

masthead();
heading();
if (runs.length) {
    differencesSection();
    headlineSection();
    lossSection();
    differenceSection();
    speedSection();
    memorySection();
    gaugesSection();
}
strobe.benchSections(data, section);
strobe.profileSections(data, runs.length, section);
samplesSection();
detailsSection();
footer();

/* For the test that opens this page: the curves of each chart that changed its canvas. */
for (const chart of strobe.charts) chart.host.dataset.drawn = [...chart.drawn].join(" ");
document.body.dataset.curves = strobe.charts.reduce((sum, chart) => sum + chart.drawn.size, 0);
document.body.dataset.expected = strobe.charts.reduce((sum, chart) => sum + chart.series.length, 0);
document.body.dataset.ready = "true";
})();
