"use strict";
/* The charts of the page, drawn by dygraphs. A chart has a host element and a function that makes its series.
 * It records which series changed the canvas, for tests. */
const strobe = {};

/* The legend is unused, and it writes a style attribute, which the page's policy forbids. */
Dygraph.PLUGINS = Dygraph.PLUGINS.filter(plugin => plugin !== Dygraph.Plugins.Legend);

strobe.PALETTE = 7;
strobe.charts = [];

/* The current color of a CSS variable, because a canvas cannot use variables. */
strobe.color = function (variable) {
    const probe = document.createElement("span");
    probe.style.color = "var(" + variable + ")";
    document.body.append(probe);
    const color = getComputedStyle(probe).color;
    probe.remove();
    return color;
};
strobe.runVariable = r => "--run-" + r % strobe.PALETTE;

/* Runs with the same color differ in the sign of points and in the dashes of curves: each dash is followed by one dot
 * more in each further round of the palette. */
const round = r => Math.floor(r / strobe.PALETTE), SIGNS = ["■", "+", "×", "○", "△", "–", "◇", "▽", "|"];
strobe.dashOf = r => round(r) ? [7, 3].concat(...Array(round(r) - 1).fill([2, 3])) : null;
strobe.signOf = r => SIGNS[round(r) % SIGNS.length];
/* The mark of a run in a list, as on its curve or, with `dots`, on its points. */
strobe.swatch = function (r, dots) {
    const style = {"--c": `var(${strobe.runVariable(r)})`}, dash = strobe.dashOf(r);
    if (dots) return strobe.element("span", {class: "swatch sign", "data-sign": strobe.signOf(r), style});
    let at = 0;
    const parts = (dash || []).map((length, i) => `${i % 2 ? "transparent" : "var(--c)"} ${at}px ${at += length}px`);
    if (dash) style["background-image"] = `repeating-linear-gradient(90deg, ${parts.join(", ")})`;
    return strobe.element("span", {class: "swatch curve" + (dash ? " dashed" : ""), style});
};

/* The distance of ticks on a linear axis with at most `most` ticks: 1, 2 or 5 times a power of ten, for bytes
 * also times a power of 1024. */
strobe.tickStep = function (across, most, bytes) {
    const want = across / most;
    const unit = bytes ? 1024 ** Math.max(0, Math.floor(Math.log2(want) / 10)) : 1;
    const power = 10 ** Math.floor(Math.log10(want / unit));
    const step = [1, 2, 5, 10].map(k => k * power).find(s => s * unit >= want);
    return unit * (bytes && step > 1000 ? 1024 : step);
};

/* --- series ------------------------------------------------------------------------------------ */

const isNumber = x => x !== null && Number.isFinite(x);

/* The losses of a run's steps as means over a window of iterations, ignoring losses that are not numbers. At the start,
 * where losses fall fast, the window is symmetric; at the end, where losses are noise, it is cut off on the right. In a
 * thinned run a step has the mean of all steps that it represents. */
strobe.smooth = function (steps, window) {
    const {iter, loss} = steps, mean = steps.mean || loss, sum = [0], count = [0];
    iter.forEach((at, i) => {
        const n = !isNumber(mean[i]) ? 0 : steps.of ? steps.of[i] : 1;
        sum.push(sum[i] + (n ? n * mean[i] : 0));
        count.push(count[i] + n);
    });
    let a = 0, b = 0;
    return iter.map((at, i) => {
        const reach = Math.min(window / 2, at - iter[0]);
        while (iter[a] < at - reach) a++;
        while (b < iter.length && iter[b] <= at + reach) b++;
        return isNumber(loss[i]) ? (sum[b] - sum[a]) / (count[b] - count[a]) : NaN;
    });
};

/* The index of the last x <= at; -1 if there is none. */
strobe.lastBefore = function (xs, at) {
    let low = -1, high = xs.length;
    while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (xs[middle] <= at) low = middle;
        else high = middle;
    }
    return low;
};

/* The seconds of training at an iteration, interpolated linearly between logged steps. */
strobe.secondsAt = function (steps, iter) {
    const seconds = steps.seconds, i = strobe.lastBefore(steps.iter, iter);
    if (i < 0) return 0;
    if (i + 1 >= steps.iter.length) return seconds[i];
    const share = (iter - steps.iter[i]) / (steps.iter[i + 1] - steps.iter[i]);
    return seconds[i] + share * (seconds[i + 1] - seconds[i]);
};

/* Joins series with different x into the rows of dygraphs; null where a series has no point. */
function rowsOf(series) {
    const rows = new Map();
    series.forEach((s, column) => s.x.forEach((x, i) => {
        if (!rows.has(x)) rows.set(x, new Array(series.length + 1).fill(null));
        rows.get(x)[column + 1] = s.y[i] === null ? NaN : s.y[i];
    }));
    const sorted = [...rows.keys()].sort((a, b) => a - b);
    return sorted.map(x => { const row = rows.get(x); row[0] = x; return row; });
}

/* --- one chart --------------------------------------------------------------------------------- */

/* Dots without lines between them. */
function dotPlotter(e, s) {
    const context = e.drawingContext, sign = round(s.run) ? strobe.signOf(s.run) : null;
    context.fillStyle = e.color;
    context.font = "10px sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const point of e.points) {
        if (!Number.isFinite(point.canvasy)) continue;
        if (sign) context.fillText(sign, point.canvasx, point.canvasy);
        else context.fillRect(point.canvasx - 1, point.canvasy - 1, 2, 2);
    }
}

/* A mark at the edge for every point outside the frame: a triangle, or a cross for a value that is not a number. */
function markOutside(e, s) {
    const context = e.drawingContext, {y, h} = e.plotArea, values = new Map(s.x.map((x, i) => [x, s.y[i]]));
    const line = (...points) => points.forEach(([dx, dy], i) => i ? context.lineTo(dx, dy) : context.moveTo(dx, dy));
    context.fillStyle = context.strokeStyle = strobe.color(strobe.runVariable(s.run));
    context.setLineDash([]);
    context.lineWidth = 1.5;
    for (const {canvasx: at, canvasy, xval} of e.points) {
        if (!values.has(xval)) continue;
        context.beginPath();
        if (!isNumber(values.get(xval))) {
            line([at - 3.5, y + 1], [at + 3.5, y + 8]);
            line([at + 3.5, y + 1], [at - 3.5, y + 8]);
            context.stroke();
        } else if (!isNumber(canvasy) || canvasy > y + h + 1) line([at - 4, y + h - 7], [at + 4, y + h - 7], [at, y + h - 1]);
        else if (canvasy < y - 1) line([at - 4, y + 7], [at + 4, y + 7], [at, y + 1]);
        context.fill();
    }
}

/* The range of y without outliers; null: there are none. Outliers are at most 1 % of the points at each side of each
 * series, and only if they would squeeze the other points to a fraction of the height. */
strobe.innerRange = function (series, withZero) {
    const all = series.map(s => s.y.filter(isNumber).sort((a, b) => a - b)).filter(ys => ys.length), zero = withZero ? [0] : [];
    const few = ys => ys.length < 10 ? 0 : Math.ceil(ys.length / 100);
    const least = Math.min(...all.map(ys => ys[0])), low = Math.min(...zero, ...all.map(ys => ys[few(ys)]));
    const most = Math.max(...all.map(ys => ys.at(-1))), high = Math.max(...zero, ...all.map(ys => ys.at(-1 - few(ys))));
    const span = Math.max(high - low, Math.abs(high) / 100), below = low - least > 2 * span, above = most - high > 2 * span;
    return below || above ? [below ? low - span / 4 : Math.min(least, low), above ? high + span / 4 : Math.max(most, high)] : null;
};

/* Counts the pixels that a series changes on the canvas. A curve exactly on top of another counts, too,
 * because its color differs. */
function countingPlotter(chart) {
    const plotter = e => {
        const s = chart.series.find(s => s.name === e.setName);
        if (s.width) Dygraph.Plotters.linePlotter(e);
        else dotPlotter(e, s);
        if (s.raw) markOutside(e, s);
    };
    return e => {
        if (chart.counted) return plotter(e);
        const canvas = e.drawingContext.canvas;
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
        const look = () => {
            copy.clearRect(0, 0, canvas.width, canvas.height);
            copy.drawImage(canvas, 0, 0);
            return new Uint32Array(copy.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        };
        const before = look();
        plotter(e);
        const after = look();
        let changed = 0;
        for (let i = 0; i < after.length; i++) changed += before[i] !== after[i];
        if (changed) chart.drawn.add(e.setName);
    };
}

/* series: [{name, run, x, y, width (0: dots), points, faint, raw: of logged values}] */
function seriesOptions(series) {
    const options = {};
    for (const s of series) {
        const color = strobe.color(strobe.runVariable(s.run));
        options[s.name] = {
            color: s.faint ? color.replace("rgb(", "rgba(").replace(")", ", " + s.faint + ")") : color,
            strokeWidth: s.width,
            strokePattern: s.plain ? null : strobe.dashOf(s.run),
            drawPoints: !!s.points,
            pointSize: s.points || 0,
            highlightCircleSize: s.width > 1 || s.points ? 4 : 2.5,
        };
    }
    return options;
}

strobe.themed = () => ({
    gridLineColor: strobe.color("--grid"),
    axisLineColor: strobe.color("--line"),
});

const shortNumber = x => {
    const size = Math.abs(x), [divisor, unit] = size >= 1e9 ? [1e9, "G"] : size >= 1e6 ? [1e6, "M"] : [1, ""];
    if (x !== 0 && (size < 1e-3 || size >= 1e12)) return Number(x.toPrecision(3)).toExponential().replaceAll("-", "−");
    return String(Math.round(x / divisor * 1e6) / 1e6).replace("-", "−") + unit;
};

/* A note above a chart that explains its marks at the edges, with a button that shows the whole range. */
function outsideNote(chart, noun, unit, xlabel) {
    const button = strobe.element("button", {type: "button", onclick: () => { chart.whole = !chart.whole; chart.redraw({}); }});
    const words = strobe.element("span"), node = strobe.element("p", {class: "hint outside"}, words, button);
    const where = x => xlabel() === "iteration" ? "at iteration " + strobe.thousands(x) : `at ${strobe.thousands(x)} ${xlabel().split(",")[0]}`;
    const extreme = (word, p) => `; the ${word} ${noun} is ${shortNumber(+p.y.toPrecision(5))}${unit}, ${where(p.x)}`;
    chart.host.before(node);
    return inner => {
        const points = chart.series.filter(s => s.raw).flatMap(s => s.y.map((y, i) => ({x: s.x[i], y})));
        const beyond = inner ? points.filter(p => isNumber(p.y) && (p.y < inner[0] || p.y > inner[1])) : [];
        const none = points.filter(p => !isNumber(p.y)), few = beyond.length === 1, parts = [];
        const most = beyond.reduce((a, b) => b.y > a.y ? b : a, beyond[0]), least = beyond.reduce((a, b) => b.y < a.y ? b : a, beyond[0]);
        if (beyond.length) parts.push(`${strobe.thousands(beyond.length)} point${few ? " is an outlier" : "s are outliers"}` + (chart.whole ? "" : few ? ", marked at the edge" : ", marked at the edges") +
            (most.y > inner[1] ? extreme("highest", most) : "") + (least.y < inner[0] ? extreme("lowest", least) : ""));
        if (none.length) parts.push((none.length > 1 ? `${strobe.thousands(none.length)} losses are not numbers, marked by crosses, the first ` : "A loss is not a number, marked by a cross, ") + where(none[0].x));
        node.hidden = !parts.length;
        button.hidden = !beyond.length;
        words.textContent = parts.map(part => part + ". ").join("");
        button.textContent = chart.whole ? "Without outliers" : "Whole range";
    };
}

/* A chart whose series come from a function, so that controls can regenerate them. noun, unit: name and unit of a value. */
strobe.chart = function (host, [noun, unit], makeSeries, options) {
    const chart = {host, drawn: new Set(), counted: false, makeSeries, whole: false};
    const note = outsideNote(chart, noun, unit, () => options.xlabel);
    const all = () => {
        chart.series = chart.makeSeries();
        const inner = options.logscale ? null : strobe.innerRange(chart.series, options.includeZero);
        note(inner);
        return Object.assign({
            labels: ["x", ...chart.series.map(s => s.name)],
            series: seriesOptions(chart.series),
            connectSeparatedPoints: true,
            plotter: countingPlotter(chart),
            valueRange: inner && !chart.whole ? inner : [null, null],
            axisLabelFontSize: 12,
            axisLineWidth: 1,
            gridLineWidth: 1,
            xRangePad: 6,
            yRangePad: 10,
            animatedZooms: !matchMedia("(prefers-reduced-motion: reduce)").matches,
            axes: {
                x: {axisLabelFormatter: shortNumber, drawGrid: false},
                y: {axisLabelFormatter: shortNumber, axisLabelWidth: 64},
            },
            file: rowsOf(chart.series),
        }, strobe.themed(), options);
    };
    const {file, ...first} = all();
    chart.graph = new Dygraph(host, file, first);
    chart.counted = true;
    chart.redraw = change => {
        for (const key of ["xlabel", "logscale"]) if (key in change) options[key] = change[key]; /* kept when the theme changes */
        chart.graph.updateOptions(Object.assign(all(), change));
    };
    strobe.charts.push(chart);
    return chart;
};

strobe.redrawAll = () => strobe.charts.forEach(chart => chart.redraw({}));

/* --- the charts of this page ------------------------------------------------------------------- */

/* Earlier runs are wider, so that coinciding curves appear as nested bands. */
function nestedWidth(r, n) {
    const levels = Math.min(n, 5);
    return 1.4 + (n > levels ? .5 : Math.min(2.6, 6 / levels)) * (levels - 1 - r % levels);
}

/* Iterations on an axis of iterations or of training tokens. */
const onAxis = (run, axis) => iter => axis === "tokens" ? iter * run.plan.tokens_per_step : iter;
strobe.sameTokens = runs => runs.every(run => run.plan.tokens_per_step === runs[0].plan.tokens_per_step);

/* state: {axis: "iter" | "tokens" | "seconds", train: bool, hidden: Set of runs, window: iterations that are averaged (on
 * an axis of tokens, iterations of the first run); 0: no smoothing} */
strobe.lossSeries = function (runs, state) {
    const logged = [], train = [], val = [];
    runs.forEach((run, r) => {
        if (state.hidden.has(r)) return;
        const steps = run.steps, evals = run.evals, byTime = state.axis === "seconds", at = onAxis(run, state.axis);
        const faint = evals.iter.length ? .5 : 0, x = byTime ? steps.seconds : steps.iter.map(at);
        const window = state.axis === "tokens" ? state.window * runs[0].plan.tokens_per_step / run.plan.tokens_per_step : state.window;
        if (state.train && steps.iter.length)
            logged.push({name: r + (state.window ? ".logged" : ".train"), run: r, width: 1, faint: state.window ? .22 : faint, plain: state.window > 0, raw: true, x, y: steps.loss});
        if (state.train && steps.iter.length && state.window)
            train.push({name: r + ".train", run: r, width: 1, faint, x, y: strobe.smooth(steps, window)});
        if (evals.iter.length)
            val.push({
                name: r + ".val", run: r, width: nestedWidth(r, runs.length), points: .6 + nestedWidth(r, runs.length) * .8, raw: true,
                x: byTime ? evals.iter.map(i => strobe.secondsAt(steps, i)) : evals.iter.map(at),
                y: evals.val_loss,
            });
    });
    return [...logged, ...train, ...val];
};

/* Validation loss of each later run minus that of the first run, at iterations where both were evaluated, or at equal
 * numbers of tokens if the runs' iterations differ in tokens. Runs whose losses are not comparable are left out. */
strobe.differenceSeries = function (runs) {
    const axis = strobe.sameTokens(runs) ? "iter" : "tokens", of = onAxis(runs[0], axis);
    const first = new Map(runs[0].evals.iter.map((iter, i) => [of(iter), runs[0].evals.val_loss[i]]));
    return runs.slice(1).map((run, i) => {
        const x = [], y = [];
        if (!run.incomparable) run.evals.iter.map(onAxis(run, axis)).forEach((at, k) => {
            const a = first.get(at), b = run.evals.val_loss[k];
            if (isNumber(a) && isNumber(b)) { x.push(at); y.push(b - a); }
        });
        return {name: i + 1 + ".difference", run: i + 1, width: 1.6, points: 2.6, raw: true, x, y};
    }).filter(s => s.x.length);
};

/* One value of each step, where it is known. */
const ofSteps = (runs, name, value, hidden) => runs.map((run, r) => {
    const known = run.steps.iter.map((iter, i) => [iter, value(run, run.steps.ms[i])]).filter(([, y]) => isNumber(y));
    return {name: `${r}.${name}`, run: r, width: 0, faint: .7, raw: true, x: known.map(p => p[0]), y: known.map(p => p[1])};
}).filter(s => s.x.length && !(hidden && hidden.has(s.run)));

strobe.stepTimeSeries = (runs, state) => ofSteps(runs, "ms", (run, ms) => ms, state.hidden);

/* The share is inversely proportional to a step's time, so the median's share and the times give every step's share. */
strobe.planSeries = (runs, key) => ofSteps(runs, key, (run, ms) => isNumber(ms) ? 100 * run[key] * run.ms_median / ms : null);

/* Telemetry of the device. kind: a key of a run's gauges; state: {axis: "seconds" | "iter", hidden: Set of runs} */
strobe.gaugeSeries = function (runs, kind, scale, state) {
    return runs.map((run, r) => {
        const x = [], y = [];
        run.gauges[state.axis].forEach((at, i) => {
            if (!isNumber(run.gauges[kind][i])) return;
            if (x.length && x[x.length - 1] === at) { x.pop(); y.pop(); } /* of several in one iteration, keep the last */
            x.push(at);
            y.push(run.gauges[kind][i] / scale);
        });
        return {name: r + "." + kind, run: r, width: .4 + nestedWidth(r, runs.length) * .6, raw: true, x, y};
    }).filter(s => s.x.length > 1 && !state.hidden.has(s.run));
};

/* A line at zero, under the curves. */
strobe.zeroLine = function (context, area, graph) {
    const y = Math.round(graph.toDomYCoord(0)) + .5;
    if (y < area.y || y > area.y + area.h) return;
    context.save();
    context.strokeStyle = strobe.color("--soft");
    context.beginPath();
    context.moveTo(area.x, y);
    context.lineTo(area.x + area.w, y);
    context.stroke();
    context.restore();
};
