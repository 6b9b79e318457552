/* A run's page: its charts, the search among its metrics, and what comes while it is open. */

function startRun(data) {
  let [view, charts, average] = [null, new Map(), new URLSearchParams(location.search).get("average") ?? ""];
  const news = document.getElementById("news");

  function lay(told) {
    const old = view;
    view = new LiveView(told);
    if (old && !old.whole) [view.first, view.last] = [old.first, old.last];
    view.average = average;
    charts = new Map();
    for (const place of document.querySelectorAll("[data-chart]")) {
      const form = told.charts[place.dataset.chart]?.form;
      if (form) charts.set(place, new (["lines", "bands"].includes(form) ? LiveChart : LayeredChart)(place, place.dataset.chart, view));
    }
    watchCharts(charts);
    const choice = document.getElementById("smoothing");
    choice.value = average;
    choice.addEventListener("change", () => {
      average = choice.value;
      view.setAverage(average);
      keepInAddress({ average: average || null });
    });
    offerProofs(told.provable, startRollouts(told.key));
    startConsole(told.key);
    startControl(told, told.control, news, refresh);
    searchMetrics(document.getElementById("run"));
    view.onstale = refresh;
    view.onshow = () => keepInAddress({ first: view.whole ? null : Math.floor(view.first), last: view.whole ? null : Math.ceil(view.last) });
    document.documentElement.dataset.ready = "yes";
  }

  /* Put the texts of the newest judgement in place of the old ones. */
  async function refresh() {
    const answer = await fetch(`/api/content?key=${encodeURIComponent(data.key)}`).catch(() => null);
    if (!answer?.ok) return;
    const told = await answer.json();
    const made = new DOMParser().parseFromString(told.html, "text/html").getElementById("run");
    const open = new Set([...document.querySelectorAll("#run details[open] > summary")].map((one) => one.textContent));
    for (const one of made.querySelectorAll("details > summary")) one.parentElement.open ||= open.has(one.textContent);
    const words = document.querySelector("#run .search")?.value ?? "";
    const top = scrollY;
    const verdict = (page) => page.querySelector(".word")?.textContent;
    const [before, after] = [verdict(document), verdict(made)];
    document.getElementById("run").replaceWith(made);
    lay(told.data);
    const box = document.querySelector("#run .search");
    if (box && words) { box.value = words; box.dispatchEvent(new Event("input")); }
    scrollTo({ top, behavior: "instant" });
    if (before !== after) news.textContent = `The verdict is now ${after}.`;
  }

  lay(data);
  const wanted = new URLSearchParams(location.search);
  const [first, last] = ["first", "last"].map((name) => Number(wanted.get(name)));
  if (wanted.has("first") && last > first) view.show(first, last);

  listen(`/api/events?key=${encodeURIComponent(data.key)}&`, data.position, {
    points: (message) => {
      view.append(message);
      const step = document.getElementById("step");
      if (step) step.textContent = written(message.last);
    },
    told: (message) => { news.textContent = message.text; },
    judged: refresh,
    reload: refresh,
    deleted: () => { news.textContent = "The files of this run were deleted: this is what was read before."; },
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) view.redraw(); });
  document.addEventListener("click", (event) => {
    const rule = event.target.closest?.("[data-rule]")?.dataset.rule;
    if (!rule || !goToFinding(rule)) return;
    event.preventDefault();
    keepInAddress({ finding: rule });
  });
  if (wanted.has("finding")) goToFinding(wanted.get("finding"));
  printing(() => charts);
}

/* Unfold and show the finding of a rule; return whether there is one. */
function goToFinding(rule) {
  const name = [...document.querySelectorAll(".finding code")].find((one) => one.textContent === rule);
  const article = name?.closest(".finding");
  if (!article) return false;
  for (let one = name; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
  article.setAttribute("tabindex", "-1");
  article.focus({ preventScroll: true });
  article.scrollIntoView({ block: "start" });
  article.classList.add("flash");
  setTimeout(() => article.classList.remove("flash"), 1600);
  return true;
}

/* Hide the metrics that lack one of the words. */
function searchMetrics(run) {
  const box = run.querySelector(".search");
  if (!box) return; // nothing is logged
  const hits = run.querySelector(".hits");
  const cards = [...run.querySelectorAll(".metric[data-words]")];
  const every = hits.textContent;
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const card of cards) card.hidden = !words.every((word) => card.dataset.words.includes(word));
    for (const kind of run.querySelectorAll(".kind")) kind.hidden = !kind.querySelector(".metric:not([hidden])");
    const count = cards.filter((card) => !card.hidden).length;
    hits.textContent = words.length ? `${count} of ${every}` : every;
  });
}

/* On paper nothing can be unfolded, and nothing comes into sight. */
function printing(charts) {
  let unfolded = [];
  addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("details:not([open], .export, .asking)")];
    for (const one of unfolded) one.open = true;
    const every = [...charts().values()];
    const missing = every.filter((chart) => !chart.loaded);
    missing[0]?.view.loadNow(missing);
    for (const chart of every) if (chart.loaded) chart.print();
  });
  addEventListener("afterprint", () => {
    for (const one of unfolded) one.open = false;
    charts().forEach((chart) => chart.stale());
  });
}
