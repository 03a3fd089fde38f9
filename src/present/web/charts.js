"use strict";
/* The charts of the page, drawn by dygraphs. A chart has a host element and a function that makes its series.
 * It records which series changed the canvas, for tests. */
const strobe = {};

/* The legend is unused, and it writes a style attribute, which the page's policy forbids. */
Dygraph.PLUGINS = Dygraph.PLUGINS.filter(plugin => plugin !== Dygraph.Plugins.Legend);

strobe.PALETTE = 7;
strobe.charts = [];

/* The current color of a CSS variable, because a canvas cannot use variables. */
strobe.colour = function (variable) {
    const probe = document.createElement("span");
    probe.style.color = "var(" + variable + ")";
    document.body.append(probe);
    const colour = getComputedStyle(probe).color;
    probe.remove();
    return colour;
};
strobe.runVariable = r => "--run-" + r % strobe.PALETTE;

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

/* The mean over `width` neighbours, ignoring values that are not numbers. At the start, where losses fall
 * fast, the window is symmetric; at the end, where they are noise, it is cut off on the right. */
strobe.smooth = function (ys, width) {
    if (width <= 1) return ys;
    const sum = [0], count = [0];
    for (let i = 0; i < ys.length; i++) {
        sum.push(sum[i] + (isNumber(ys[i]) ? ys[i] : 0));
        count.push(count[i] + (isNumber(ys[i]) ? 1 : 0));
    }
    const half = Math.floor(width / 2);
    return ys.map((y, i) => {
        const reach = Math.min(half, i);
        const a = i - reach, b = Math.min(i + reach + 1, ys.length);
        return isNumber(y) ? (sum[b] - sum[a]) / (count[b] - count[a]) : NaN;
    });
};

/* Seconds of training up to each logged step; a step stands for the unlogged ones before it. */
strobe.secondsOf = function (steps) {
    let seconds = 0, before = steps.iter.length ? steps.iter[0] - 1 : 0;
    return steps.iter.map((iter, i) => {
        if (isNumber(steps.ms[i])) seconds += steps.ms[i] / 1000 * (iter - before);
        before = iter;
        return seconds;
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

/* The seconds at an iteration, interpolated linearly between logged steps. */
strobe.secondsAt = function (steps, seconds, iter) {
    const i = strobe.lastBefore(steps.iter, iter);
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
function dotPlotter(e) {
    const context = e.drawingContext;
    context.fillStyle = e.color;
    for (const point of e.points)
        if (Number.isFinite(point.canvasy)) context.fillRect(point.canvasx - 1, point.canvasy - 1, 2, 2);
}

/* Counts the pixels that a series changes on the canvas. A curve exactly on top of another counts, too,
 * because its color differs. */
function countingPlotter(chart, plotter) {
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

/* series: [{name, run, x, y, width, points, faint}] */
function seriesOptions(series) {
    const options = {};
    for (const s of series) {
        const colour = strobe.colour(strobe.runVariable(s.run));
        options[s.name] = {
            color: s.faint ? colour.replace("rgb(", "rgba(").replace(")", ", " + s.faint + ")") : colour,
            strokeWidth: s.width,
            strokePattern: s.run >= strobe.PALETTE ? [7, 3] : null,
            drawPoints: !!s.points,
            pointSize: s.points || 0,
            highlightCircleSize: s.width > 1 || s.points ? 4 : 2.5,
        };
    }
    return options;
}

strobe.themed = () => ({
    gridLineColor: strobe.colour("--grid"),
    axisLineColor: strobe.colour("--line"),
});

const shortNumber = x => {
    if (x !== 0 && (Math.abs(x) < 1e-3 || Math.abs(x) >= 1e6)) return Number(x.toPrecision(3)).toExponential().replaceAll("-", "−");
    return String(Math.round(x * 1e6) / 1e6).replace("-", "−");
};

/* A chart whose series come from a function, so that controls can regenerate them. */
strobe.chart = function (host, makeSeries, options) {
    const chart = {host, drawn: new Set(), counted: false, makeSeries};
    chart.series = makeSeries();
    const all = () => Object.assign({
        labels: ["x", ...chart.series.map(s => s.name)],
        series: seriesOptions(chart.series),
        connectSeparatedPoints: true,
        plotter: countingPlotter(chart, chart.series.some(s => s.width) ? Dygraph.Plotters.linePlotter : dotPlotter),
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
    }, strobe.themed(), options);
    chart.graph = new Dygraph(host, rowsOf(chart.series), all());
    chart.counted = true;
    chart.redraw = change => {
        if (change.xlabel) options.xlabel = change.xlabel; /* kept when the theme changes */
        chart.series = chart.makeSeries();
        chart.graph.updateOptions(Object.assign(all(), {file: rowsOf(chart.series)}, change));
    };
    strobe.charts.push(chart);
    return chart;
};

strobe.redrawAll = () => strobe.charts.forEach(chart => chart.redraw({}));

/* --- the charts of this page ------------------------------------------------------------------- */

/* Earlier runs are wider, so that coinciding curves appear as nested bands. */
function nestedWidth(r, n) {
    const levels = Math.min(n, 5);
    return 1.4 + Math.min(2.6, 6 / levels) * (levels - 1 - r % levels);
}

/* Iterations on an axis of iterations or of training tokens. */
const onAxis = (run, axis) => iter => axis === "tokens" ? iter * run.plan.tokens_per_step : iter;
strobe.sameTokens = runs => runs.every(run => run.plan.tokens_per_step === runs[0].plan.tokens_per_step);

/* state: {axis: "iter" | "tokens" | "seconds", train: bool, smoothing: share of the steps, hidden: Set of runs} */
strobe.lossSeries = function (runs, state) {
    const train = [], val = [];
    runs.forEach((run, r) => {
        if (state.hidden.has(r)) return;
        const seconds = strobe.secondsOf(run.steps), steps = run.steps, evals = run.evals;
        const byTime = state.axis === "seconds", at = onAxis(run, state.axis);
        if (state.train && steps.iter.length)
            train.push({
                name: r + ".train", run: r, width: 1, faint: evals.iter.length ? .5 : 0,
                x: byTime ? seconds : steps.iter.map(at),
                y: strobe.smooth(steps.loss, Math.round(steps.iter.length * state.smoothing)),
            });
        if (evals.iter.length)
            val.push({
                name: r + ".val", run: r, width: nestedWidth(r, runs.length), points: .6 + nestedWidth(r, runs.length) * .8,
                x: byTime ? evals.iter.map(i => strobe.secondsAt(steps, seconds, i)) : evals.iter.map(at),
                y: evals.val,
            });
    });
    return [...train, ...val];
};

/* Validation loss of each later run minus that of the first, where both were evaluated; after equally many tokens if
 * their iterations differ in tokens. Runs whose losses are not comparable are left out. */
strobe.differenceSeries = function (runs) {
    const axis = strobe.sameTokens(runs) ? "iter" : "tokens", of = onAxis(runs[0], axis);
    const first = new Map(runs[0].evals.iter.map((iter, i) => [of(iter), runs[0].evals.val[i]]));
    return runs.slice(1).map((run, i) => {
        const x = [], y = [];
        if (!run.incomparable) run.evals.iter.map(onAxis(run, axis)).forEach((at, k) => {
            const a = first.get(at), b = run.evals.val[k];
            if (isNumber(a) && isNumber(b)) { x.push(at); y.push(b - a); }
        });
        return {name: i + 1 + ".difference", run: i + 1, width: 1.6, points: 2.6, x, y};
    }).filter(s => s.x.length);
};

strobe.stepTimeSeries = runs => runs.map((run, r) => ({
    name: r + ".ms", run: r, width: 0, faint: .7, x: run.steps.iter, y: run.steps.ms,
})).filter(s => s.x.length);

/* The share falls as the time of a step rises, so one number and the times are enough. */
strobe.planSeries = (runs, key) => runs.map((run, r) => ({
    name: `${r}.${key}`, run: r, width: 0, faint: .7, x: run.steps.iter,
    y: run.steps.ms.map(ms => isNumber(ms) && isNumber(run[key]) && isNumber(run.ms_median) ? 100 * run[key] * run.ms_median / ms : null),
})).filter(s => s.y.some(isNumber));

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
        return {name: r + "." + kind, run: r, width: .4 + nestedWidth(r, runs.length) * .6, x, y};
    }).filter(s => s.x.length > 1 && !state.hidden.has(s.run));
};

/* Bars at the top, one row for each run whose clock was lowered. The height is the share of the time. */
strobe.slowedBars = function (runs, state) {
    const HEIGHT = 7;
    return (context, area, graph) => {
        let top = area.y;
        runs.forEach((run, r) => {
            const slowed = run.gauges.throttled, at = run.gauges[state.axis];
            if (state.hidden.has(r) || !slowed.some(share => share > 0)) return;
            context.fillStyle = strobe.colour(strobe.runVariable(r));
            slowed.forEach((share, i) => {
                if (!(share > 0)) return;
                const to = Math.round(Math.min(graph.toDomXCoord(at[i]), area.x + area.w));
                const from = Math.round(Math.max(graph.toDomXCoord(i ? at[i - 1] : 0), area.x));
                const height = Math.max(HEIGHT * share, 2);
                if (to >= from) context.fillRect(from, top + HEIGHT - height, Math.max(to - from, 1), height);
            });
            top += HEIGHT + 2;
        });
    };
};

/* A line at zero, under the curves. */
strobe.zeroLine = function (context, area, graph) {
    const y = Math.round(graph.toDomYCoord(0)) + .5;
    if (y < area.y || y > area.y + area.h) return;
    context.save();
    context.strokeStyle = strobe.colour("--soft");
    context.beginPath();
    context.moveTo(area.x, y);
    context.lineTo(area.x + area.w, y);
    context.stroke();
    context.restore();
};
