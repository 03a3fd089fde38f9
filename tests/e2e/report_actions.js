"use strict";
/* What a person does with the sections about profiles of a report, done by a script that a test puts at the
 * end of the page: what went wrong is in the body's data-failed, how much was tried in data-tried. */
(() => {
const failed = [];
let tried = 0;
const expect = (truth, words) => { tried++; if (!truth) failed.push(words); };
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const button = (from, text) => all("button", from).find(b => b.textContent === text);
const press = (from, text) => { const b = button(from, text); expect(b, `no button "${text}"`); if (b) b.click(); };

/* The pixels of a canvas; of a copy, so that the canvas stays where it is drawn. */
function pixelsOf(canvas, x = 0, y = 0, width = canvas.width, height = canvas.height) {
    const copy = new OffscreenCanvas(width, height).getContext("2d", {willReadFrequently: true});
    copy.drawImage(canvas, -x, -y);
    return copy.getImageData(0, 0, width, height).data;
}

/* --- tables ------------------------------------------------------------------------------------- */

/* "−1,234.5" as a number; what shows nothing as NaN. */
const numberIn = cell => cell.textContent.trim() === "–" ? NaN : Number(cell.textContent.replace(/,/g, "").replace("−", "-"));
const column = (table, i) => all("tbody tr", table).map(tr => tr.children[i]);

/* Values go one way, and what is nothing stands at the end. */
function inOrder(values, down, less) {
    const none = values.findIndex(x => Number.isNaN(x) || x === "–");
    const known = none < 0 ? values : values.slice(0, none), rest = none < 0 ? [] : values.slice(none);
    return rest.every(x => Number.isNaN(x) || x === "–") && known.every((x, i) => !i || (down ? !less(known[i - 1], x) : !less(x, known[i - 1])));
}

function tryHeadings(host, what) {
    const more = host.querySelector(".show-all");
    if (more && !more.hidden) more.click();
    expect(all("tbody tr", host).length > 1, `${what}: fewer than two rows`);
    for (const id of all("th", host).map(th => th.dataset.column)) {
        const th = () => host.querySelector(`th[data-column="${id}"]`);
        const i = all("th", host).indexOf(th()), numbers = th().classList.contains("number");
        for (let click = 0; click < 2; click++) {
            th().querySelector("button").click();
            const down = th().getAttribute("aria-sort") === "descending";
            const cells = column(host, i);
            const good = numbers ? inOrder(cells.map(numberIn), down, (a, b) => a < b)
                : inOrder(cells.map(c => c.textContent.trim()), down, (a, b) => a.localeCompare(b, "en", {numeric: true}) < 0);
            expect(th().hasAttribute("aria-sort") && good, `${what}: "${id}" does not sort ${down ? "down" : "up"}`);
            if (click) expect(down !== numbers, `${what}: a second click on "${id}" does not turn it`);
        }
    }
}

/* Hardware counters have columns of their own; those of the test are twice the plan's bytes. */
function tryCounters(host, controls) {
    const there = button(controls, "hardware counters");
    expect(!there === !document.body.dataset.counters, there ? "hardware counters without any" : "no hardware counters");
    if (!there) return;
    there.click();
    tryHeadings(host, "hardware counters");
    const place = id => all("th", host).findIndex(th => th.dataset.column === id);
    const cells = id => place(id) < 0 ? [] : column(host, place(id)).map(numberIn).filter(x => !Number.isNaN(x));
    expect(cells("beyond").length > 3 && cells("beyond").every(x => x === 2), `× plan: ${cells("beyond")}, not 2`);
    for (const [id, share] of [["dram_busy", 75], ["tensor_active", 25], ["sm_active", 50]])
        expect(cells(id).length > 3 && cells(id).every(x => x === share), `${id}: ${cells(id)}, not ${share}`);
    expect(cells("rate").length === 0 && cells("floor").length === 0, "the table has both work and counters");
    press(controls, "occupancy");
    tryHeadings(host, "occupancy");
    expect(cells("sm_warps").length > 3 && cells("sm_warps").every(x => x === 48), `warps of an SM: ${cells("sm_warps")}, not 48`);
    expect(cells("occupancy").every(x => x === 75) && cells("beyond").length === 0, "another occupancy than the profile's, or counters beside it");
    press(controls, "times and work");
    expect(cells("beyond").length === 0 && cells("floor").length > 3, "the table of times did not come back");
}

function tryTables() {
    const host = document.getElementById("rows");
    if (!host) return;
    const controls = host.previousElementSibling;
    /* All tables once; on other pages two that stand for them. */
    for (const by of document.body.dataset.brief ? ["Kernel", "Range"] : ["Kernel", "Operator", "Family", "Layer", "Phase", "Range", "Node"]) {
        press(controls, by);
        const share = all("th", host).findIndex(th => th.dataset.column === "share");
        expect(all("tfoot td", host)[share].textContent === "100.0", `${by}: the shares are ${all("tfoot td", host)[share].textContent} %, not 100`);
        tryHeadings(host, by);
    }
    press(controls, "Kernel");
    tryCounters(host, controls);
    const before = all("tbody tr", host).length, filter = controls.querySelector("input[type=search]");
    const write = text => { filter.value = text; filter.dispatchEvent(new Event("input")); };
    write("backward norms");
    const left = all("tbody tr", host).length;
    expect(left > 0 && left < before, `the filter leaves ${left} of ${before} rows`);
    expect(column(host, 0).every(cell => /NORM/.test(cell.textContent)), "the filter leaves a row that is no norm");
    write("no such words");
    expect(all("tbody tr", host).length === 0, "the filter leaves rows that do not match");
    write("");
    expect(all("tbody tr", host).length === before, "an empty filter hides rows");
    press(controls, "forward");
    expect(all("tfoot td", host)[1].textContent === "100.0", "the shares of forward are not 100 %");
}

/* Tables of `strobe bench` sort, bars fill their column, and curves are in the picture. */
function tryBenches() {
    for (const section of all(".bench")) {
        all(".sorted", section).forEach((host, i) => tryHeadings(host, `bench table ${i}`));
        for (const bars of all(".bars", section)) {
            const widths = all(".fill", bars).map(fill => parseFloat(fill.style.width));
            expect(widths.length > 1 && widths.every(w => w >= 0 && w <= 100), `bars of ${widths.join(", ")} %`);
            const ends = all(".track", bars).flatMap(track => [...track.children].map(part => (parseFloat(part.style.left) || 0) + parseFloat(part.style.width)));
            expect(Math.abs(Math.max(...ends) - 100) < .1, `bars and whiskers end at ${Math.max(...ends)} %, not 100`);
        }
        for (const image of all("img.curves", section)) {
            const picture = new DOMParser().parseFromString(decodeURIComponent(image.src.split(",").slice(1).join(",")).replace(/<style>[^]*?<.style>/, "").replaceAll(" style=", " data-style="), "image/svg+xml");
            expect(all("polyline", picture).some(line => line.getAttribute("points").trim().split(" ").length > 1), "a picture has no curves");
        }
    }
}

function tryChanges() {
    const host = document.getElementById("changes");
    if (!host) return;
    tryHeadings(host, "changes");
    const at = all("th", host).findIndex(th => th.dataset.column === "difference");
    const sum = column(host, at).reduce((total, cell) => total + numberIn(cell), 0), total = numberIn(all("tfoot td", host)[at]);
    const step = i => numberIn(all("tfoot td", host)[at + i]);
    expect(Math.abs(sum - total) < .02, `differences add up to ${sum}, not ${total}`);
    expect(Math.abs(step(2) - step(1) - total) < .01, `${step(2)} - ${step(1)} is not ${total}`);
    press(host.previousElementSibling, "vanished");
    expect(all("tbody tr", host).length > 0 && column(host, 0).every(cell => cell.textContent === "vanished"), "not what vanished");
    press(host.previousElementSibling, "all");
}

/* --- the timeline ------------------------------------------------------------------------------- */

function tryTimeline() {
    const host = document.querySelector(".timeline");
    if (!host) return;
    const canvas = host.querySelector("canvas"), controls = document.getElementById("timeline-controls");
    const shown = () => [Number(host.dataset.from), Number(host.dataset.to)];
    const across = () => shown()[1] - shown()[0];
    const pixels = () => pixelsOf(canvas).reduce((h, x) => (h * 31 + x) | 0, 7);
    const box = () => canvas.getBoundingClientRect();
    const pointer = (kind, x, y, more) => canvas.dispatchEvent(new PointerEvent(kind, Object.assign({bubbles: true, pointerId: 1, clientX: box().left + x, clientY: box().top + y}, more)));
    const key = name => canvas.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true, cancelable: true}));
    const whole = across(), picture = pixels(), width = canvas.clientWidth;
    expect(Number(host.dataset.boxes) > 100, `only ${host.dataset.boxes} boxes are drawn`);
    /* does ACT, and the part that is shown must be narrower, wider, moved or whole */
    const then = (words, act, truth) => {
        const [from, to] = shown();
        act();
        const now = shown();
        expect(truth({narrower: now[1] - now[0] < (to - from) * .95, wider: now[1] - now[0] > (to - from) * 1.05, right: now[0] > from + 1, left: now[0] < from - 1, whole: across() === whole}), `${words}: from ${from}..${to} to ${now}`);
    };
    then("the button +", () => press(controls, "+"), x => x.narrower);
    expect(pixels() !== picture, "a zoom changes no pixel");
    then("the button →", () => press(controls, "→"), x => x.right && !x.narrower && !x.wider);
    then("the button ←", () => press(controls, "←"), x => x.left);
    then("the button −", () => press(controls, "−"), x => x.wider);
    then("the button backward", () => press(controls, "backward"), x => x.narrower || x.right);
    then("the key +", () => key("+"), x => x.narrower);
    then("the key →", () => key("ArrowRight"), x => x.right);
    then("the key ←", () => key("ArrowLeft"), x => x.left);
    then("the key −", () => key("-"), x => x.wider);
    then("the key 0", () => key("0"), x => x.whole);
    then("Ctrl and wheel", () => canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: -60, ctrlKey: true, bubbles: true, cancelable: true, clientX: box().left + width / 2})), x => x.narrower);
    then("a double click", () => canvas.dispatchEvent(new MouseEvent("dblclick", {bubbles: true})), x => x.whole);
    expect(pixels() === picture, "all of it again is not the same picture");
    then("the mouse drawn over a part", () => { pointer("pointerdown", width * .4, 60); pointer("pointermove", width * .6, 60); pointer("pointerup", width * .6, 60); }, x => x.narrower && x.right);
    then("the mouse drawn with shift", () => { pointer("pointerdown", width * .4, 60, {shiftKey: true}); pointer("pointermove", width * .6, 60, {shiftKey: true}); pointer("pointerup", width * .6, 60, {shiftKey: true}); }, x => x.left && !x.narrower);
    key("0");
    tryNames(host, canvas, pointer, key, width);
}

function tryNames(host, canvas, pointer, key, width) {
    const tip = host.querySelector(".tip");
    const said = (x, y) => { pointer("pointermove", x, y); return tip.hidden ? "" : tip.innerText; };
    const depth = 4, kernels = 22 + depth * 19 + 15;
    const kernel = said(width * .3, kernels);
    for (const part of [/MATMUL|ATTENTION|SOFTMAX|NORM|LOSS|CROSS/, / µs| ms/, /[TG]FLOP, /, /[MG]B: /, /FLOP\/s, /, /[TG]B\/s/, /floor/, /bound by (compute|memory|latency)/])
        expect(part.test(kernel), `the kernel under the mouse: ${part} is not in "${kernel}"`);
    const range = said(width * .3, 22 + 19 + 9);
    expect(/(forward|backward) \/ /.test(range) && /kernels/.test(range), `the range under the mouse: "${range}"`);
    const memory = said(width * .3, canvas.clientHeight - 20);
    if (document.body.dataset.memory !== "none") expect(/^(peak, )?[\d.]+ GiB/.test(memory) && /saved for backward [\d.]+ [KMG]iB/.test(memory), `memory under the mouse: "${memory}"`);
    pointer("pointerleave", 0, 0);
    expect(tip.hidden, "the box stays when the mouse has left");
    key(".");
    const first = tip.innerText;
    key(".");
    expect(!tip.hidden && tip.innerText !== first, "the key . does not step to the next kernel");
    key("Escape");
}

/* --- rooflines, colors -------------------------------------------------------------------------- */

function tryRooflines() {
    for (const host of all(".roofline")) {
        const image = host.querySelector("img"), tip = host.querySelector(".tip"), at = image.getBoundingClientRect();
        expect(all("svg", host).length === 0, "the picture is part of the page, not an image");
        expect(image.complete && image.naturalWidth === 1000, "the picture is not drawn");
        const picture = decodeURIComponent(image.src.slice(image.src.indexOf(",") + 1)), drawn = what => picture.split(what).length - 1;
        const points = [...picture.matchAll(/<circle class="chart-point"[^>]* cx="([\d.]+)" cy="([\d.]+)" r="[\d.]+"><title>([^<]*)/g)];
        expect(points.length > 10, `only ${points.length} points`);
        expect(/measured \d{4}-\d\d-\d\d/.test(picture), "the ceilings have no date");
        expect(drawn('class="chart-ceiling') >= 3, "too few ceilings");
        expect(drawn('class="chart-label"') >= 3, "the largest points have no names");
        const scale = at.width / 1000, top = Number(/viewBox="0 (\d+) /.exec(picture)[1]);
        const move = (x, y) => image.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: at.left + x * scale, clientY: at.top + (y - top) * scale}));
        const [, x, y, words] = points[points.length - 1];
        move(Number(x), Number(y));
        expect(!tip.hidden && /per step/.test(tip.innerText), "a point does not say what it is");
        expect(words.startsWith(tip.querySelector("b").textContent), `the words of another point: ${tip.querySelector("b").textContent}`);
        expect(!host.querySelector(".ring").hidden, "the point is not marked");
        move(3, top + 3);
        expect(tip.hidden && host.querySelector(".ring").hidden, "an empty place has words");
    }
}

function tryTheme() {
    const canvas = document.querySelector(".timeline canvas");
    if (!canvas) return;
    const corner = () => pixelsOf(canvas, Math.round(canvas.width * .3), Math.round((22 + 4 * 19 + 15) * (devicePixelRatio || 1)), 1, 1).join();
    const before = corner();
    document.querySelector(".masthead button").click();
    expect(corner() !== before, "the timeline keeps the colors of the other theme");
    document.querySelector(".masthead button").click();
}

try {
    for (const act of [tryChanges, tryBenches, tryTimeline, tryTables, tryRooflines, tryTheme]) act();
} catch (error) {
    failed.push(String(error.stack));
}
document.body.dataset.failed = failed.join(" | ");
document.body.dataset.tried = tried;
})();
