"use strict";
/* Parts of sections: elements, formatted numbers, sortable tables. */

/* style: an object of properties. Each is set on its own, so no value can add another, and the page's
 * content security policy allows no style attributes in text. */
strobe.element = function (tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
        if (key === "style") for (const [property, text] of Object.entries(value)) node.style.setProperty(property, text);
        else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
        else if (value !== undefined) node.setAttribute(key, value);
    }
    node.append(...children.filter(child => child !== null && child !== undefined));
    return node;
};

/* A row of bars: a name with its mark, the track with its bars, and the value in words. */
strobe.barRow = (name, mark, track, ...value) => strobe.element("div", {class: "row"},
    strobe.element("div", {class: "label", title: name}, mark, name), track, strobe.element("div", {class: "value"}, ...value));

/* A drawing of the program as an image: it has its own colors, and nothing in it can act on the page. */
strobe.picture = (svg, attributes) => strobe.element("img", Object.assign({src: "data:image/svg+xml," + encodeURIComponent(svg)}, attributes));

/* A row of buttons, of which one is pressed. choices: [[value, label], ...] */
strobe.segments = function (choices, chosen, choose) {
    const buttons = choices.map(([value, label]) => strobe.element("button", {
        type: "button", "aria-pressed": value === chosen,
        onclick: () => { buttons.forEach((b, i) => b.setAttribute("aria-pressed", choices[i][0] === value)); choose(value); },
    }, label));
    return strobe.element("span", {class: "segments"}, ...buttons);
};

/* --- numbers ----------------------------------------------------------------------------------- */

/* Where the window is narrow, a name is cut in the middle: its beginning and its end tell names apart. */
const NARROW = "(max-width: 40rem)", SHORT = 44;
strobe.middleCut = text => !matchMedia(NARROW).matches || text.length <= SHORT ? text
    : text.slice(0, SHORT / 2 - 1) + "…" + text.slice(-SHORT / 2);

strobe.minus = text => text.replace(/^-(?=[\d.])/, "−");
/* A loss: four decimals, or four digits where these would be zeros. */
strobe.loss = x => !isNumber(x) ? "NaN" : strobe.minus(x !== 0 && Math.abs(x) < .01 ? x.toPrecision(4) : x.toFixed(4));
strobe.thousands = x => Math.round(x).toLocaleString("en-US");

/* Three significant digits, never in scientific notation. */
strobe.short = function (x) {
    if (!isNumber(x)) return null;
    if (x === 0) return "0";
    const digits = Math.min(Math.max(2 - Math.floor(Math.log10(Math.abs(x))), 0), 6);
    return strobe.minus(Math.abs(x) >= 1e4 ? strobe.thousands(x) : x.toFixed(digits));
};

const PREFIXES = [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
/* The unit prefix that suits the largest number: {divisor, unit}. */
strobe.unitFor = function (values, unit) {
    const most = values.reduce((a, b) => isNumber(b) && b > a ? b : a, 0);
    const [divisor, prefix] = PREFIXES.find(([size]) => most >= size) || [1, ""];
    return {divisor, unit: prefix + unit};
};
strobe.withUnit = function (x, unit) {
    if (!isNumber(x)) return null;
    const scale = strobe.unitFor([x], unit);
    return strobe.short(x / scale.divisor) + " " + scale.unit;
};
/* A time given in microseconds, in µs or ms. */
strobe.time = us => us < 1000 ? strobe.short(us) + " µs" : strobe.short(us / 1000) + " ms";

strobe.bytes = function (x) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (Math.abs(x) >= 1024 && unit + 1 < units.length) { x /= 1024; unit++; }
    return x.toFixed(unit ? 1 : 0) + " " + units[unit];
};

/* --- tables ------------------------------------------------------------------------------------ */

/* The columns of a table of the program that have a text, each with its index. */
strobe.usedColumns = table => table.columns.map((c, i) => [c, i]).filter(([, i]) => table.shown.some(row => row[i] !== null));

/* --- tables that sort -------------------------------------------------------------------------- */

/* Compares numbers by value, and texts with embedded numbers naturally. Empty cells come last in both directions. */
function compareCells(a, b, down) {
    const none = x => x === null || x === undefined || x === "" || Number.isNaN(x);
    if (none(a) || none(b)) return none(a) - none(b);
    const order = typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", {numeric: true});
    return down ? -order : order;
}

/* columns: [{id, title, help, number, value: row => number or text, cell: row => text or node}]
 * options: {sort: id or null for the given order, down, most: rows shown at first, words: row => text to
 * search, noun, foot: rows => {id: text}, draw: (tr, row) => ..., placeholder} */
strobe.sortTable = function (columns, options) {
    const state = {rows: [], sort: options.sort || null, down: options.down !== false, most: options.most || 50, words: ""};
    const head = strobe.element("tr"), body = strobe.element("tbody"), foot = strobe.element("tfoot");
    const count = strobe.element("span", {class: "count", "aria-live": "polite"});
    const more = strobe.element("button", {type: "button", class: "show-all", onclick: () => { state.most = Infinity; draw(); }});
    const filter = strobe.element("input", {
        type: "search", class: "filter", placeholder: options.placeholder || "filter", "aria-label": "show only rows with these words", spellcheck: "false",
        oninput: () => { state.words = filter.value; draw(); },
    });
    const cellsOf = row => columns.map(c => {
        const content = c.cell ? c.cell(row) : c.value(row);
        const empty = content === null || content === undefined || content === "";
        return strobe.element("td", {class: `c-${c.id}` + (c.number ? " number" : "") + (empty ? " none" : "") + (c.kind ? " " + c.kind : "")}, empty ? "–" : content);
    });
    const matching = () => {
        const words = state.words.toLowerCase().split(/\s+/).filter(Boolean);
        return state.rows.filter(row => { const text = options.words(row).toLowerCase(); return words.every(w => text.includes(w)); });
    };
    const sorted = rows => {
        const column = columns.find(c => c.id === state.sort);
        return column ? rows.map((row, i) => [column.value(row), i, row])
            .sort((a, b) => compareCells(a[0], b[0], state.down) || a[1] - b[1]).map(x => x[2]) : rows;
    };
    function drawHead() {
        head.replaceChildren(...columns.map(c => {
            const on = c.id === state.sort;
            return strobe.element("th", {
                class: (c.number ? "number" : "") + (c.kind ? " " + c.kind : ""), scope: "col", title: c.help, "data-column": c.id,
                "aria-sort": on ? (state.down ? "descending" : "ascending") : undefined,
            }, strobe.element("button", {type: "button", onclick: () => sortBy(c)}, c.title));
        }));
    }
    function draw() {
        const all = sorted(matching());
        const shown = all.slice(0, state.most);
        body.replaceChildren(...shown.map(row => {
            const tr = strobe.element("tr", {}, ...cellsOf(row));
            if (options.draw) options.draw(tr, row, state);
            return tr;
        }));
        const sums = options.foot ? options.foot(all) : null;
        foot.replaceChildren(...(sums && all.length ? [strobe.element("tr", {}, ...columns.map(c => strobe.element("td", {class: `c-${c.id}` + (c.number ? " number" : "") + (c.kind ? " " + c.kind : "")}, sums[c.id] || "")))] : []));
        count.textContent = all.length === state.rows.length ? `${all.length} ${options.noun}` : `${all.length} of ${state.rows.length} ${options.noun}`;
        more.hidden = shown.length === all.length;
        more.textContent = `Show all ${all.length}`;
    }
    function sortBy(column) {
        if (state.sort === column.id) state.down = !state.down;
        else { state.sort = column.id; state.down = !!column.number; }
        state.clicked = true;
        drawHead();
        draw();
        head.querySelector(`[data-column="${column.id}"] button`).focus({preventScroll: true});
    }
    const scroll = strobe.element("div", {class: "scroll", tabindex: "0"}, strobe.element("table", {class: "dense"}, strobe.element("thead", {}, head), body, foot));
    const hint = strobe.element("p", {class: "hint", hidden: ""}, "The table is wider than the window; scroll to the right.");
    new ResizeObserver(() => { hint.hidden = scroll.scrollWidth <= scroll.clientWidth + 1; }).observe(scroll);
    const node = strobe.element("div", {class: "sorted"}, hint, scroll, more);
    drawHead();
    return {
        node, filter, count,
        /* Replaces the rows; with columns, the whole table. The filter stays. */
        show(rows, change) {
            state.rows = rows;
            if (change && change.columns) columns = change.columns;
            if (change && change.noun) options.noun = change.noun;
            /* Keep the column that the user chose, if the lines are of the same kind. */
            const kept = change && change.keep && state.clicked;
            if (change && "sort" in change && !kept) { state.sort = change.sort; state.down = change.down !== false; state.clicked = false; }
            if (change && change.most) state.most = change.most;
            drawHead();
            draw();
            hint.hidden = scroll.scrollWidth <= scroll.clientWidth + 1;
        },
    };
};

/* --- tooltip ------------------------------------------------------------------------------------ */

/* `host` must be positioned; x and y are relative to it. lines: [heading, line, ...] */
strobe.tip = function (host) {
    const box = strobe.element("div", {class: "tip", role: "status", hidden: ""});
    host.append(box);
    return {
        box,
        hide() { box.hidden = true; },
        show(lines, x, y, color) {
            box.replaceChildren(...lines.filter(Boolean).map((text, i) => strobe.element(i ? "span" : "b", {}, text)));
            box.style.setProperty("--c", color || "transparent");
            box.hidden = false;
            const width = host.clientWidth, own = box.offsetWidth;
            box.style.left = Math.max(0, Math.min(x + 14, width - own)) + "px";
            const below = y + 18, above = y - box.offsetHeight - 12;
            box.style.top = (host.getBoundingClientRect().top + below + box.offsetHeight > innerHeight && above > -host.getBoundingClientRect().top ? above : below) + "px";
        },
    };
};
