/* A report's page: its charts, the search among its metrics, and paper. */

const told = JSON.parse(document.getElementById("data").textContent);
const column = unpacker(told.columns);
const charts = new Map();

function drawCharts(run) {
  const view = new View(run, column);
  for (const one of run.charts) {
    const place = document.querySelector(`[data-chart="${one.name}"]`);
    if (place) charts.set(place, new Chart(place, one, view));
  }
}
for (const run of [...(told.overlay ? [told.overlay] : []), ...told.runs]) drawCharts(run);
watchCharts(charts);
emphasizeByName([...document.querySelectorAll(".names .key")], [...charts.values()]);

/* Hide the metrics that lack one of the words. */
function search(run) {
  const box = run.querySelector(".search");
  if (!box) return; // nothing is logged
  const hits = run.querySelector(".hits");
  const cards = [...run.querySelectorAll(".metric")];
  const every = hits.textContent;
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const card of cards) card.hidden = !words.every((word) => card.dataset.words.includes(word));
    for (const kind of run.querySelectorAll(".kind")) {
      kind.hidden = !kind.querySelector(".metric:not([hidden])");
    }
    const left = cards.filter((card) => !card.hidden).length;
    hits.textContent = words.length ? `${left} of ${every}` : every;
  });
}
document.querySelectorAll(".run, .all-runs").forEach(search);

/* Unfold what a link leads to. */
function unfold() {
  let place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place?.closest("details:not([open])")) return;
  for (let one = place.parentElement; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
  place.scrollIntoView();
}
addEventListener("hashchange", unfold);
unfold();

/* On paper nothing can be unfolded, and nothing comes into sight. */
let unfolded = [];
addEventListener("beforeprint", () => {
  unfolded = [...document.querySelectorAll("details:not([open])")];
  for (const one of unfolded) one.open = true;
  charts.forEach((chart) => chart.print());
});
addEventListener("afterprint", () => {
  for (const one of unfolded) one.open = false;
  charts.forEach((chart) => chart.stale());
});
/* In a frame, as in a notebook, the page tells how high its content is. */
if (parent !== self) {
  const tell = () => parent.postMessage({ rlvitalsHeight: document.documentElement.getBoundingClientRect().height }, "*");
  new ResizeObserver(tell).observe(document.documentElement);
}
document.documentElement.dataset.ready = "yes";
