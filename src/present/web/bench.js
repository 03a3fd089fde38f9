"use strict";
(() => {
/* Sections about results of `strobe bench`: sortable tables, a bar for each row, and curves drawn by the program. */
const {element} = strobe;

/* The rows of a table as objects: numbers by column id, and the shown texts. */
const rowsOf = table => table.shown.map((shown, i) => ({shown, number: table.rows[i]}));

/* Numbers in parentheses, which are not comparable with the others, are paler. */
function tableOf(table) {
    const columns = strobe.usedColumns(table).map(([c, i]) => ({
        id: c.id, title: c.title, help: c.help, number: c.is_number,
        value: row => c.is_number && row.shown[i] !== null ? row.number[c.id] : row.shown[i],
        cell: row => row.shown[i] === null ? null : c.is_number && row.shown[i].startsWith("(") ? element("span", {class: "dimmed"}, row.shown[i]) : strobe.minus(row.shown[i]),
    }));
    const sorted = strobe.sortTable(columns, {noun: "rows", most: table.drawn_only ? 5 : 60, words: row => row.shown.filter(Boolean).join(" ")});
    sorted.show(rowsOf(table));
    return sorted;
}

const textOf = (table, row, id) => {
    const i = table.columns.findIndex(c => c.id === id);
    return i < 0 ? null : row.shown[i];
};

/* Bars with the same last label (the phase, the variant) have the same color. */
function barsOf(table) {
    const chart = table.chart, rows = rowsOf(table).filter(row => isNumber(row.number[chart.y]));
    if (!rows.length) return null;
    const kinds = [...new Set(rows.map(row => textOf(table, row, chart.labels[chart.labels.length - 1])))];
    const spread = row => chart.spread && isNumber(row.number[chart.spread]) ? row.number[chart.spread] : 0;
    const most = rows.reduce((a, row) => Math.max(a, row.number[chart.y] + spread(row)), 0) || 1;
    const share = x => (100 * Math.max(x, 0) / most).toFixed(2) + "%"; /* a difference may be negative */
    const bars = rows.map(row => {
        const x = row.number[chart.y], s = spread(row), low = Math.max(x - s, 0);
        const label = chart.labels.map(id => textOf(table, row, id)).filter(Boolean).join(" · ");
        const kind = kinds.indexOf(textOf(table, row, chart.labels[chart.labels.length - 1]));
        return strobe.barRow(label, null, element("div", {class: "track", style: {"--c": `var(${strobe.runVariable(kinds.length > 1 ? kind : 0)})`}},
                element("div", {class: "fill", style: {width: share(x)}}),
                s > 0 ? element("div", {class: "whisker", style: {left: share(low), width: share(x + s - low)}}) : null),
            chart.unit === "bytes" ? strobe.bytes(x) : strobe.short(x) + " " + chart.unit);
    });
    const node = element("div", {class: "bars"}, ...bars);
    return bars.length > 40 ? element("details", {}, element("summary", {}, chart.title || "chart", element("small", {}, bars.length + " bars")), node)
        : element("div", {}, element("h3", {}, chart.title || ""), node);
}

function curvesOf(table) {
    return element("div", {class: "scroll"}, strobe.picture(table.curves, {class: "curves", alt: table.chart.title || "curves"}));
}

/* The text of each row in a box of its own. */
function textsOf(table) {
    const {labels, y} = table.chart;
    return element("div", {class: "texts"}, ...rowsOf(table).map(row => element("figure", {},
        element("figcaption", {}, labels.map(id => textOf(table, row, id)).filter(Boolean).join(" · ")),
        element("pre", {}, textOf(table, row, y)))));
}

function chartOf(table) {
    if (!table.chart) return null;
    if (table.chart.kind === "texts") return textsOf(table);
    return table.chart.kind === "bars" ? barsOf(table) : table.curves ? curvesOf(table) : null;
}

strobe.benchSections = function (data, section) {
    for (const bench of data.benches || []) {
        const node = section(bench.title || bench.name, bench.text);
        node.classList.add("bench");
        for (const table of bench.tables) {
            const sorted = tableOf(table);
            if (table.title) node.append(element("h3", {}, table.title));
            const chart = chartOf(table);
            if (chart) node.append(chart);
            if (table.chart && table.chart.kind === "texts") continue;
            node.append(element("div", {class: "controls"}, sorted.filter, sorted.count), element("div", {class: "wide"}, sorted.node));
        }
        node.append(...bench.notes.map(note => element("p", {class: "note"}, note)));
    }
};
})();
