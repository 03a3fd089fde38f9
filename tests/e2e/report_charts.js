"use strict";
/* Looks at the charts of a report: nothing that a run logged is missing. A test puts this script at the end of the page
 * and the name of a case in the body's data-case; what is wrong is in its data-wrong. */
(() => {
const wrong = [], expect = (truth, words) => { if (!truth) wrong.push(words); };
const chartOf = id => strobe.charts.find(c => c.host.id === id);
const {runs} = JSON.parse(document.getElementById("data").textContent);
const noteOf = id => document.getElementById(id).previousElementSibling;
const top = id => chartOf(id).graph.yAxisRange()[1];

/* Whether something is drawn at an x, a few pixels below the upper edge of a chart. */
function isMarked(id, x) {
    const graph = chartOf(id).graph, area = graph.getArea(), canvas = graph.hidden_, scale = canvas.width / canvas.clientWidth;
    const copy = new OffscreenCanvas(3, 3).getContext("2d");
    copy.drawImage(canvas, -Math.round((graph.toDomXCoord(x) - 1) * scale), -Math.round((area.y + 3) * scale));
    return copy.getImageData(0, 0, 3, 3).data.some(x => x > 0);
}

const cases = {
    groups() {
        expect(noteOf("step-time").hidden, "steps are outliers: " + noteOf("step-time").textContent);
        expect(top("step-time") > 20, `the chart of step times ends at ${top("step-time")}`);
    },
    spike() {
        const note = noteOf("loss"), words = note.textContent;
        expect(/1 point is an outlier, marked at the edge; the highest loss is 80, at iteration 7,000/.test(words), "the note: " + words);
        expect(/A loss is not a number, marked by a cross, at iteration 9,000/.test(words), "the note: " + words);
        expect(top("loss") < 8 && isMarked("loss", 7000) && isMarked("loss", 9000) && !isMarked("loss", 8000), "no marks at the edge");
        expect(document.querySelector(".readout").textContent.includes("train 0.000001234"), "not the logged loss: " + document.querySelector(".readout").textContent);
        note.querySelector("button").click();
        expect(top("loss") > 80, `the whole range ends at ${top("loss")}`);
        note.querySelector("button").click();
        expect(top("loss") < 8, "the range without outliers did not come back");
        [...document.querySelectorAll("button")].find(b => b.textContent === "Logarithmic").click();
        expect(top("loss") > 80, `the logarithmic range ends at ${top("loss")}`);
    },
    lengths() {
        const [long, short] = ["0.train", "1.train"].map(name => chartOf("loss").series.find(s => s.name === name));
        const at = (s, x) => s.y[s.x.indexOf(x)];
        for (const x of [1, 100, 250]) expect(at(long, x) === at(short, x), `at ${x} the means are ${at(long, x)} and ${at(short, x)}`);
        const slider = document.querySelector("input[type=range]");
        expect(slider.nextElementSibling.textContent === "mean of 5 iterations", "the window: " + slider.nextElementSibling.textContent);
        slider.value = 0;
        slider.dispatchEvent(new Event("input"));
        const series = chartOf("loss").series.find(s => s.name === "0.train");
        expect(series.y[10] === strobe.charts[0].series[0].y[10] && !chartOf("loss").series.some(s => s.name === "0.logged"), "the loss is still smoothed");
    },
    tokens() {
        const [few, many] = ["0.train", "1.train"].map(name => chartOf("loss").series.find(s => s.name === name));
        const slider = document.querySelector("input[type=range]"), around = runs[1].steps.loss.slice(100 - 10, 100 + 11);
        expect(slider.nextElementSibling.textContent === "mean of 15,360 tokens", "the window: " + slider.nextElementSibling.textContent);
        expect(Math.abs(many.y[100] - around.reduce((a, b) => a + b) / 21) < 1e-9 && many.x[100] === 101 * 768, `a mean of ${many.y[100]} at ${many.x[100]} tokens`);
        expect(few.x[100] === 101 * 3072 && few.y[100] !== many.y[100], "one window of iterations");
        expect(!document.body.innerText.includes("same curve as"), "curves over other tokens are called the same");
    },
    many() {
        const lists = [...document.querySelectorAll(".readout")], marks = list => [...list.querySelectorAll(".swatch")].map(s => (s.getAttribute("style") + (s.dataset.sign || "")));
        for (const list of lists) expect(new Set(marks(list)).size === marks(list).length && marks(list).length >= 19, "two runs have one mark: " + marks(list));
        for (const kind of ["loss", "difference", "gauge-power_w"]) {
            const graph = chartOf(kind).graph, series = chartOf(kind).series.filter(s => !s.plain && /val|diff|power/.test(s.name));
            const looks = series.map(s => graph.getOption("color", s.name) + graph.getOption("strokePattern", s.name));
            expect(looks.length >= 19 && new Set(looks).size === looks.length, `${kind}: two curves look the same`);
        }
    },
};
cases[document.body.dataset.case]();
document.body.dataset.wrong = wrong.join(" | ");
})();
