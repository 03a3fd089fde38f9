"use strict";
/* The timeline of one step on a canvas: ranges at the top, kernels below them, memory at the bottom. Timelines
 * of several profiles show the same part of the step. */
(() => {
const element = strobe.element;
const AXIS = 22, RANGE = 19, KERNELS = 34, LANE = 18, MEMORY = 130, GAP = 10, LEVELS = 4;
const LEAST = 0.5; /* µs: the shortest interval that can be shown */

/* --- data ---------------------------------------------------------------------------------------- */

/* Ranges of one depth; neighbors with the same path are merged. */
function spansOf(p, depth) {
    const spans = [];
    let last = null;
    for (const m of p.moments) {
        if (m.lane > 0) continue;
        const range = m.row.range;
        if (range.length <= depth) { last = null; continue; }
        const path = range.slice(0, depth + 1).join(" / ");
        if (last && last.path === path) { last.end = Math.max(last.end, m.end); }
        else spans.push(last = {name: range[depth], path, start: m.start, end: m.end, kernels: 0, busy: 0, flops: 0, bytes: 0, floor: 0, depth});
        last.kernels++;
        last.busy += m.end - m.start;
        last.flops += m.row.flops || 0;
        last.bytes += m.row.bytes || 0;
        last.floor += 1e3 * (m.row.floor_ms || 0);
    }
    return spans;
}

function memoryOf(p, end) {
    if (!p.memory || !p.memory.columns.length) return null;
    const timed = p.memory.columns.some(c => isNumber(c.at)), columns = p.memory.columns;
    let last = 0;
    const starts = columns.map((c, i) => last = timed ? Math.max(last, isNumber(c.at) ? c.at : last) : i * end / columns.length);
    const used = c => c.bytes.reduce((sum, b, i) => sum + (p.memory.parts[i][0] === "unused" ? 0 : b), 0);
    const peak = p.memory.peak >= 0 ? p.memory.peak : columns.reduce((best, c, i) => used(c) > used(columns[best]) ? i : best, 0);
    return {columns, starts, parts: p.memory.parts, used: columns.map(used), peak, most: Math.max(...columns.map(c => c.bytes.reduce((a, b) => a + b, 0)))};
}

/* The first index whose value is above x. */
function above(n, value, x) {
    let low = 0, high = n;
    while (low < high) {
        const mid = (low + high) >> 1;
        if (value(mid) > x) high = mid;
        else low = mid + 1;
    }
    return low;
}

/* --- texts --------------------------------------------------------------------------------------- */

/* A time since the start of the step. */
const since = us => us < 1000 ? us.toFixed(2) + " µs" : (us / 1000).toFixed(3) + " ms";
const rates = (flops, bytes, us) => [flops ? strobe.withUnit(flops / us * 1e6, "FLOP/s") : null, bytes ? strobe.withUnit(bytes / us * 1e6, "B/s") : null].filter(Boolean).join(", ");
const work = (flops, bytes) => [flops ? strobe.withUnit(flops, "FLOP") : null, bytes ? strobe.withUnit(bytes, "B") : null].filter(Boolean).join(", ");
const floorWords = (us, floor, bound) => [floor > 0 ? `floor ${strobe.time(floor)}, takes ${strobe.short(us / floor)} times as long` : null, bound ? `bound by ${bound}` : null].filter(Boolean).join("; ");

function momentWords(m) {
    const us = m.end - m.start, row = m.row;
    /* FLOPs and bytes are of all kernels of the operator, so use the time of all of them. */
    const whole = row.ms > 0 ? us * row.work_ms / row.ms : us;
    const done = work(row.flops, row.bytes);
    return [row.name, row.range.join(" / "), `${strobe.time(us)}, from ${since(m.start)}`,
        done && whole > 0 ? `${done}: ${rates(row.flops, row.bytes, whole)}` : done, floorWords(whole, 1e3 * (row.floor_ms || 0), row.bound), row.types,
        row.device_kernel && !row.name.endsWith(row.device_kernel) ? row.device_kernel : null];
}
function spanWords(s) {
    const us = s.end - s.start;
    return [s.path, `${strobe.time(us)}, from ${since(s.start)}`, `${strobe.thousands(s.kernels)} kernels, ${strobe.time(s.busy)} of them`,
        work(s.flops, s.bytes) + (us > 0 && s.flops ? `: ${rates(s.flops, s.bytes, us)}` : ""), floorWords(us, s.floor, null)];
}
function memoryWords(memory, i) {
    const column = memory.columns[i];
    return [(i === memory.peak ? "peak, " : "") + strobe.bytes(memory.used[i]), column.row ? `${column.row.range.join(" / ")}: ${column.row.name}` : null,
        ...memory.parts.map(([, name], k) => [name, column.bytes[k]]).filter(([, b]) => b > 0).map(([name, b]) => `${name} ${strobe.bytes(b)}`)];
}

/* --- one timeline ------------------------------------------------------------------------------- */

function timelineOf(p, view, scale) {
    const moments = p.moments, lanes = [...new Set(moments.map(m => m.lane))].sort((a, b) => a - b);
    const depth = Math.min(LEVELS, moments.reduce((most, m) => Math.max(most, m.row.range.length), 0));
    const levels = Array.from({length: depth}, (_, d) => spansOf(p, d));
    const byLane = lanes.map(lane => moments.filter(m => m.lane === lane));
    const memory = memoryOf(p, scale.whole);
    const canvas = element("canvas", {tabindex: 0, role: "img", "aria-label": `timeline of a step of ${p.name}: arrow keys move it, plus and minus zoom, comma and full stop step through kernels`});
    const host = element("div", {class: "timeline"}, canvas);
    const tip = strobe.tip(host);
    const state = {hover: null, marked: null, selected: -1, drag: null, box: {}};

    const laneTop = i => AXIS + depth * RANGE + (i ? KERNELS + (i - 1) * LANE : 0) + 2;
    const memoryTop = AXIS + depth * RANGE + (lanes.length ? KERNELS + (lanes.length - 1) * LANE : 0) + GAP;
    const height = memoryTop + (memory ? MEMORY + 6 : 0);
    const laneHeight = i => i ? LANE - 2 : KERNELS - 2;

    function measure() {
        const width = host.clientWidth, left = width < 560 ? 0 : 74;
        Object.assign(state.box, {width, left, right: width - 2});
    }
    const xOf = us => state.box.left + (us - view.from) / (view.to - view.from) * (state.box.right - state.box.left);
    const usOf = x => view.from + (x - state.box.left) / (state.box.right - state.box.left) * (view.to - view.from);

    /* --- drawing --- */

    function paint() {
        measure();
        const ratio = devicePixelRatio || 1, {width, left, right} = state.box;
        if (!(width > 0)) return;
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
        canvas.style.height = height + "px";
        const c = canvas.getContext("2d"), color = scale.color;
        c.scale(ratio, ratio);
        c.clearRect(0, 0, width, height);
        c.textBaseline = "middle";
        state.boxes = 0;
        paintAxis(c, color, left, right);
        c.save();
        c.beginPath();
        c.rect(left, 0, right - left, height);
        c.clip();
        levels.forEach((spans, d) => paintSpans(c, color, spans, AXIS + d * RANGE));
        byLane.forEach((list, i) => paintMoments(c, color, list, laneTop(i), laneHeight(i)));
        if (memory) paintMemory(c, color, left, right);
        c.restore();
        paintLabels(c, color, left);
        if (state.drag && state.drag.zooms) paintSelection(c, color, left, right);
        Object.assign(host.dataset, {from: view.from.toFixed(3), to: view.to.toFixed(3), boxes: state.boxes});
    }

    function paintAxis(c, color, left, right) {
        const step = strobe.tickStep(view.to - view.from, Math.max(2, (right - left) / 110));
        c.font = `11px ${scale.font}`;
        c.textAlign = "left";
        const unit = view.to >= 1000 && step >= 1 ? [1000, "ms"] : [1, "µs"];
        const digits = Math.max(0, -Math.floor(Math.log10(step / unit[0]) + 1e-9));
        for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
            const x = Math.round(xOf(t)) + .5;
            c.strokeStyle = color("--grid");
            c.beginPath();
            c.moveTo(x, 0);
            c.lineTo(x, height);
            c.stroke();
            c.fillStyle = color("--soft");
            if (x < right - 40) c.fillText((t / unit[0]).toFixed(digits) + " " + unit[1], x + 4, AXIS / 2);
        }
    }

    function text(c, words, x, right, y, fill) {
        const room = right - x;
        if (room < 6) return;
        c.fillStyle = fill;
        let shown = words;
        if (c.measureText(words).width > room) {
            const number = words.match(/^block (\d+)$/);
            if (number) return c.measureText(number[1]).width < room ? c.fillText(number[1], x, y) : null;
            const n = Math.floor(words.length * room / c.measureText(words).width) - 1;
            if (n < 4) return;
            shown = words.slice(0, n) + "…";
        }
        c.fillText(shown, x, y);
    }

    function paintSpans(c, color, spans, top) {
        c.font = `11px ${scale.font}`;
        for (let i = above(spans.length, k => spans[k].end, view.from); i < spans.length && spans[i].start < view.to; i++) {
            const s = spans[i], x = xOf(s.start), end = xOf(s.end), hot = state.hover === s;
            c.fillStyle = color(hot ? "--soft" : "--line");
            c.fillRect(x, top, Math.max(end - x - 1, .6), RANGE - 2);
            state.boxes++;
            const from = Math.max(x, state.box.left);
            text(c, s.name, from + 5, Math.min(end, state.box.right) - 4, top + RANGE / 2 - .5, color(hot ? "--paper" : "--ink"));
        }
    }

    function paintMoments(c, color, list, top, tall) {
        c.font = `11px ${scale.font}`;
        for (let i = above(list.length, k => list[k].end, view.from); i < list.length && list[i].start < view.to; i++) {
            const m = list[i], x = xOf(m.start), end = xOf(m.end), kernel = m.row.kernel;
            c.globalAlpha = state.marked !== null && state.marked !== kernel ? .22 : 1;
            c.fillStyle = color(`--family-${m.row.family}`);
            c.fillRect(x, top, Math.max(end - x - (end - x > 3 ? .7 : 0), .6), tall);
            state.boxes++;
            if (state.hover === m) {
                c.strokeStyle = color("--ink");
                c.lineWidth = 2;
                c.strokeRect(x + 1, top + 1, Math.max(end - x - 2, 1), tall - 2);
                c.lineWidth = 1;
            }
            if (end - x > 26) text(c, m.row.op || m.row.name, Math.max(x, state.box.left) + 5, Math.min(end, state.box.right) - 4, top + tall / 2, color("--paper"));
        }
        c.globalAlpha = 1;
    }

    const memoryY = bytes => Math.round(memoryTop + MEMORY - bytes / scale.bytes * (MEMORY - 16));

    function paintMemory(c, color, left, right) {
        const {columns, starts, parts} = memory, n = columns.length;
        const first = Math.max(above(n, i => starts[i], view.from) - 1, 0);
        const end = i => Math.min(xOf(i + 1 < n ? starts[i + 1] : scale.ends.get(p)), right);
        const base = new Float64Array(n);
        parts.forEach(([id], k) => {
            c.fillStyle = scale.part(id);
            for (let i = first; i < n && starts[i] < view.to; i++) {
                const bytes = columns[i].bytes[k], x = Math.floor(Math.max(xOf(starts[i]), left));
                /* Rounded to whole pixels, so that no gaps show between columns. */
                if (bytes > 0 && end(i) > x) c.fillRect(x, memoryY(base[i] + bytes), Math.ceil(end(i)) - x, memoryY(base[i]) - memoryY(base[i] + bytes));
                base[i] += bytes;
            }
        });
        if (state.hover && state.hover.memory) {
            const x = Math.round(xOf(starts[state.hover.memory.i])) + .5;
            c.strokeStyle = color("--ink");
            c.beginPath();
            c.moveTo(x, memoryTop);
            c.lineTo(x, memoryTop + MEMORY);
            c.stroke();
        }
        paintPeak(c, color, left, right);
    }

    function paintPeak(c, color, left, right) {
        const {starts, peak, used} = memory, x = xOf(starts[peak]), y = memoryY(used[peak]);
        if (x < left - 1 || x > right + 1) return;
        c.strokeStyle = c.fillStyle = color("--ink");
        c.beginPath();
        c.moveTo(x, memoryTop + 2);
        c.lineTo(x, memoryTop + MEMORY);
        c.stroke();
        c.beginPath();
        c.arc(x, y, 3.5, 0, 7);
        c.fill();
        const words = `peak ${strobe.bytes(used[peak])}`;
        c.font = `600 11px ${scale.font}`;
        const wide = c.measureText(words).width, at = x + 8 + wide < right ? x + 8 : x - 8 - wide;
        c.lineWidth = 3;
        c.strokeStyle = color("--paper");
        c.strokeText(words, at, memoryTop + 8);
        c.lineWidth = 1;
        c.fillText(words, at, memoryTop + 8);
    }

    function paintLabels(c, color, left) {
        if (!left) return;
        c.font = `11px ${scale.font}`;
        c.textAlign = "right";
        c.fillStyle = color("--soft");
        ["phase", "block", "part", "subpart"].slice(0, depth).forEach((word, d) => c.fillText(word, left - 8, AXIS + d * RANGE + RANGE / 2));
        lanes.forEach((lane, i) => c.fillText(lane ? "overlap" : "kernels", left - 8, laneTop(i) + laneHeight(i) / 2));
        if (memory) {
            const step = strobe.tickStep(scale.bytes, 3, true);
            for (let b = 0; b <= scale.bytes; b += step) c.fillText(strobe.bytes(b).replace(".0 ", " "), left - 8, memoryY(b) - (b ? 0 : 5));
        }
        c.textAlign = "left";
    }

    function paintSelection(c, color, left, right) {
        const a = Math.max(Math.min(state.drag.x, state.drag.now), left), b = Math.min(Math.max(state.drag.x, state.drag.now), right);
        c.globalAlpha = .16;
        c.fillStyle = color("--ink");
        c.fillRect(a, AXIS, b - a, height - AXIS);
        c.globalAlpha = 1;
    }

    /* --- the object under the mouse --- */

    function find(x, y) {
        const us = usOf(x);
        if (x < state.box.left || x > state.box.right) return null;
        const level = Math.floor((y - AXIS) / RANGE);
        if (level >= 0 && level < depth) {
            const spans = levels[level], i = above(spans.length, k => spans[k].end, us);
            return spans[i] && spans[i].start <= us ? spans[i] : null;
        }
        const lane = lanes.findIndex((_, i) => y >= laneTop(i) && y < laneTop(i) + laneHeight(i));
        if (lane >= 0) return findMoment(byLane[lane], us);
        if (memory && y >= memoryTop) return {memory: {i: Math.max(above(memory.columns.length, k => memory.starts[k], us) - 1, 0)}};
        return null;
    }
    /* A narrow kernel is also hit next to it. */
    function findMoment(list, us) {
        const near = 2 * (view.to - view.from) / (state.box.right - state.box.left);
        const i = above(list.length, k => list[k].end, us);
        if (list[i] && list[i].start <= us) return list[i];
        if (list[i] && list[i].start - us < near) return list[i];
        if (i > 0 && us - list[i - 1].end < near) return list[i - 1];
        const from = i > 0 ? list[i - 1].end : 0, to = list[i] ? list[i].start : scale.ends.get(p);
        return to > us ? {idle: {from, to}} : null;
    }
    function show(found, x, y) {
        state.hover = found;
        if (!found) tip.hide();
        else if (found.row) tip.show(momentWords(found), x, y, scale.color(`--family-${found.row.family}`));
        else if (found.memory) tip.show(memoryWords(memory, found.memory.i), x, y);
        else if (found.idle) tip.show(["idle", `${strobe.time(found.idle.to - found.idle.from)}, from ${since(found.idle.from)}`], x, y);
        else tip.show(spanWords(found), x, y);
        paint();
    }

    /* --- mouse, fingers, keys --- */

    const at = event => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    canvas.addEventListener("pointerdown", event => {
        if (event.button) return;
        const [x, y] = at(event), moves = event.shiftKey || event.pointerType === "touch";
        state.drag = {x, y, now: x, from: view.from, to: view.to, moves, zooms: false};
        try { canvas.setPointerCapture(event.pointerId); } catch { /* the pointer is gone, or belongs to a test */ }
    });
    canvas.addEventListener("pointermove", event => {
        const [x, y] = at(event), drag = state.drag;
        if (!drag) return show(find(x, y), x, y);
        drag.now = x;
        if (drag.moves) {
            const us = (drag.x - x) / (state.box.right - state.box.left) * (drag.to - drag.from);
            scale.look(drag.from + us, drag.to + us);
        } else if (drag.zooms || Math.abs(x - drag.x) > 4) {
            drag.zooms = true;
            tip.hide();
            paint();
        }
    });
    canvas.addEventListener("pointerup", event => {
        const drag = state.drag, [x, y] = at(event);
        state.drag = null;
        if (!drag) return;
        if (drag.zooms) scale.look(usOf(Math.min(drag.x, drag.now)), usOf(Math.max(drag.x, drag.now)));
        else if (!drag.moves || Math.abs(x - drag.x) < 4) {
            const found = find(x, y);
            scale.mark(found && found.row && state.marked !== found.row.kernel ? [p, found.row.kernel] : null);
            show(found, x, y);
        }
    });
    canvas.addEventListener("pointercancel", () => { state.drag = null; paint(); });
    canvas.addEventListener("pointerleave", () => { if (!state.drag) show(null); });
    canvas.addEventListener("dblclick", () => scale.look(0, scale.whole));
    canvas.addEventListener("wheel", event => {
        if (event.ctrlKey || event.metaKey) scale.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 90), usOf(at(event)[0]));
        else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) scale.move((event.deltaX || event.deltaY) / (state.box.right - state.box.left));
        else return;
        event.preventDefault();
    }, {passive: false});
    canvas.addEventListener("keydown", event => {
        const keys = {
            ArrowLeft: () => scale.move(-.2), ArrowRight: () => scale.move(.2), a: () => scale.move(-.2), d: () => scale.move(.2),
            "+": () => scale.zoom(.6), "=": () => scale.zoom(.6), w: () => scale.zoom(.6), "-": () => scale.zoom(1 / .6), s: () => scale.zoom(1 / .6),
            0: () => scale.look(0, scale.whole), Home: () => scale.look(0, scale.whole), ",": () => step(-1), ".": () => step(1),
            Escape: () => { scale.mark(null); show(null); },
        };
        if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
        keys[event.key]();
        event.preventDefault();
    });
    canvas.addEventListener("blur", () => show(null));

    /* Selects the next kernel, among the marked ones if there are any; initially the first visible one. */
    function step(by) {
        const list = (byLane[0] || []).filter(m => state.marked === null || m.row.kernel === state.marked);
        if (!list.length) return;
        const now = list.indexOf(state.hover);
        const first = above(list.length, k => list[k].end, view.from);
        const m = list[Math.max(0, Math.min(list.length - 1, now < 0 ? first : now + by))];
        if (m.start < view.from || m.end > view.to) {
            const half = Math.max((view.to - view.from) / 2, m.end - m.start);
            scale.look((m.start + m.end) / 2 - half, (m.start + m.end) / 2 + half);
        }
        show(m, (xOf(m.start) + xOf(m.end)) / 2, laneTop(0) + KERNELS / 2);
    }

    return {p, host, paint, memory, phases: levels[0] || [], mark(kernel) { state.marked = kernel; paint(); }};
}

/* --- all timelines of a page --------------------------------------------------------------------- */

function buttons(scale, phases) {
    const button = (label, title, act) => element("button", {type: "button", title, "aria-label": title, onclick: act}, label);
    return element("div", {class: "controls", id: "timeline-controls"},
        element("span", {class: "segments"},
            button("−", "zoom out", () => scale.zoom(1 / .5)), button("+", "zoom in", () => scale.zoom(.5)),
            button("←", "to the left", () => scale.move(-.25)), button("→", "to the right", () => scale.move(.25))),
        element("span", {class: "segments"}, button("step", "the whole step", () => scale.look(0, scale.whole)),
            ...phases.map(s => button(s.name, `zoom to ${s.name}`, () => scale.look(s.start, s.end)))));
}

function memoryKey(charts, part) {
    const parts = new Map(charts.filter(c => c.memory).flatMap(c => c.memory.parts.filter((_, k) => c.memory.columns.some(x => x.bytes[k] > 0))));
    if (!parts.size) return null;
    return element("div", {class: "key"}, "In memory: ", ...[...parts].map(([id, name]) => element("span", {}, element("i", {style: {background: `var(${partVariable(id)})`}}), name)));
}

/* The CSS variable of a part of memory. Ids come from files; only words with a color of their own count. */
function partVariable(id) {
    const own = /^[a-z]+$/.test(id) && getComputedStyle(document.documentElement).getPropertyValue(`--memory-${id}`);
    return own ? `--memory-${id}` : "--family-12";
}

strobe.timeline = function (profiles, families, nameOf) {
    const view = {from: 0, to: 1}, scale = {whole: 0, bytes: 1, ends: new Map()};
    for (const p of profiles) {
        const end = p.moments.reduce((most, m) => Math.max(most, m.end), 0) || 1e3 * p.whole;
        scale.ends.set(p, end);
        scale.whole = Math.max(scale.whole, end);
    }
    view.to = scale.whole;
    /* Colors are looked up once for each theme. */
    let colors = new Map();
    scale.color = variable => {
        if (!colors.has(variable)) colors.set(variable, strobe.color(variable));
        return colors.get(variable);
    };
    scale.part = id => scale.color(partVariable(id));
    scale.look = (from, to) => {
        const least = Math.min(LEAST, scale.whole), across = Math.min(Math.max(to - from, least), scale.whole);
        from = Math.max(0, Math.min((from + to - across) / 2, scale.whole - across));
        Object.assign(view, {from, to: from + across});
        paint();
    };
    scale.zoom = (by, around = (view.from + view.to) / 2) => scale.look(around - (around - view.from) * by, around + (view.to - around) * by);
    scale.move = share => scale.look(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));
    const charts = profiles.map(p => timelineOf(p, view, scale));
    scale.bytes = Math.max(1, ...charts.map(c => c.memory ? c.memory.most : 0));
    /* Finds the same kernel in all timelines, by its name. */
    scale.mark = what => charts.forEach(c => {
        const name = what && what[0].rows.find(row => row.kernel === what[1]).name;
        const row = name && c.p.rows.find(r => r.name === name);
        c.mark(what ? (row ? row.kernel : -1) : null);
    });
    const paint = () => {
        scale.font = getComputedStyle(document.body).fontFamily;
        charts.forEach(c => c.paint());
    };
    const redraw = () => { colors = new Map(); paint(); };
    for (const c of charts) {
        strobe.charts.push({host: c.host, drawn: new Set(), series: [], redraw, graph: {resize: paint}});
        new ResizeObserver(paint).observe(c.host);
    }
    const phases = [...new Map(charts[0].phases.map(s => [s.name, s])).values()];
    return {
        controls: buttons(scale, phases), key: memoryKey(charts, scale.part), draw: redraw,
        nodes: charts.map(c => element("figure", {class: "timeline-of"}, profiles.length > 1 ? element("figcaption", {}, nameOf(c.p)) : null, c.host)),
    };
};
})();
