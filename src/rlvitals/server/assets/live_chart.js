/* Charts whose points come from the server: fetched as they come into sight, finer where zoomed. */

const REFINE_MS = 160; // after the last zoom
const MEAN_MS = 10000; // between two fetches of a growing curve's average
const MOST_POINTS = 12000; // of a curve: with more, it is fetched anew
const PIN_PIXELS = 9; // around an onset that a click hits

class LiveView extends View {
  constructor(data) {
    const columns = new Map();
    super(data, (name) => columns.get(name));
    Object.assign(this, { columns, data, wanted: new Set(), version: data.version });
  }

  /* Return the address that charts are asked of. */
  get source() {
    return `/api/charts?key=${encodeURIComponent(this.data.key)}&version=${this.version}`;
  }

  show(first, last) {
    super.show(first, last);
    clearTimeout(this.refining);
    this.refining = setTimeout(() => this.refine(), REFINE_MS);
    this.onshow?.();
  }

  refine() {
    for (const chart of this.charts) if (chart.seen) chart.refine();
  }

  /* Ask for a chart; those asked for at about the same time come in one answer. */
  want(chart) {
    this.wanted.add(chart);
    this.asking ??= setTimeout(() => this.ask(), 20);
  }

  async ask() {
    this.asking = null;
    const charts = [...this.wanted];
    this.wanted.clear();
    for (const some of batches(charts)) {
      const answer = await this.fetch(some.map((chart) => chart.name));
      if (!answer) return;
      give(answer, some);
    }
  }

  /* Load charts before this returns: a page that is printed waits for nothing. */
  loadNow(charts) {
    for (const some of batches(charts)) {
      const request = new XMLHttpRequest();
      request.open("GET", this.address(some.map((chart) => chart.name)), false);
      try {
        request.send();
      } catch {
        return; // the server is gone
      }
      if (request.status === 200) give(JSON.parse(request.responseText), some);
    }
  }

  address(names, range = "") {
    const asked = names.map((name) => `&name=${encodeURIComponent(name)}`).join("");
    return `${this.source}${asked}${range}${this.average ? `&average=${this.average}` : ""}`;
  }

  async fetch(names, range) {
    const answer = await fetch(this.address(names, range)).catch(() => null);
    if (answer?.status === 409) this.onstale?.();
    return answer?.ok ? answer.json() : null;
  }

  /* Draw other averages; the curves stay as they are. */
  setAverage(share) {
    this.average = share;
    for (const chart of this.charts) {
      if (!chart.loaded) continue;
      if (chart.seen) this.want(chart);
      else chart.loaded = 0;
    }
  }

  /* Add rows that were just written. */
  append(message) {
    const { whole } = this;
    this.run.first = Math.min(this.run.first, message.first);
    this.run.last = Math.max(this.run.last, message.last);
    const points = new Map(Object.entries(message.points).map(([name, told]) =>
      [name, { steps: unpackSteps(told.steps), values: unpackValues(told.values) }]));
    const grown = [...this.charts].filter((chart) => chart.append(points));
    if (whole) [this.first, this.last] = [this.run.first, this.run.last];
    if (document.hidden) return;
    for (const chart of whole ? this.charts : grown) chart.stale();
  }
}

/* Return the charts in groups, each of which one answer holds. */
function batches(charts) {
  return Array.from({ length: Math.ceil(charts.length / 12) }, (_, at) => charts.slice(12 * at, 12 * at + 12));
}

function give(answer, charts) {
  answer.charts.forEach((told) => charts.find((chart) => chart.name === told.name)?.load(told, answer.columns));
}

class LiveChart extends Chart {
  constructor(place, name, view) {
    const { title, unit, tall } = view.data.charts[name];
    super(place, { title, unit, tall, scale: "linear", curves: [], marks: [], limits: [], low: null, high: null }, view);
    Object.assign(this, { name, base: [], detail: false });
    place.inert = true;
    this.canvas.addEventListener("click", (event) => this.follow(event));
  }

  load(told, columns) {
    const kind = this.loaded && this.kind !== this.told.scale ? this.kind : told.scale;
    told.curves.forEach((curve, at) => {
      curve.metric = told.metrics[at];
      this.base[at] = unpackColumn(columns[curve.column]);
      const mean = curve.average === null ? null : unpackColumn(columns[curve.average]);
      curve.column = `${this.name}/${at}`;
      this.view.columns.set(curve.column, this.base[at]);
      if (mean) {
        curve.average = `${this.name}/${at}/mean`;
        this.view.columns.set(curve.average, mean);
      }
    });
    Object.assign(this, { told, kind, loaded: Date.now(), detail: false, other: null });
    this.place.inert = false;
    this.stale();
    if (!this.view.whole) this.refine();
  }

  draw(width) {
    if (!this.loaded) {
      this.view.want(this);
      return;
    }
    if (this.fresh && this.width === (width ?? Math.floor(this.place.clientWidth))) return;
    super.draw(width);
    if (!this.area) return;
    this.drawTimeline();
    this.drawPins();
  }

  /* Mark checkpoints on the axis, and the steps at which settings changed. */
  drawTimeline() {
    const { area, canvas, view: { data } } = this;
    const inside = (x) => x >= area.left && x <= area.right;
    for (const [step, text] of data.changes) {
      const x = area.x(step);
      if (!inside(x)) continue;
      canvas.querySelector(".below").append(svg("line", { class: "change", x1: x, x2: x, y1: area.top, y2: area.bottom }, svg("title", {}, `${written(step)}: ${text}`)));
      if (this.told.tall) canvas.querySelector(".above").append(svg("path", { class: "change-head", d: `M${x - 4} ${area.top}h8v5l-4 3l-4 -3z` }, svg("title", {}, `${written(step)}: ${text}`)));
    }
    let last = -Infinity;
    for (const [step, lamp, text] of data.checkpoints) {
      const x = area.x(step);
      if (!inside(x) || x - last < 6) continue;
      last = x;
      canvas.querySelector(".above").append(svg("path", { class: `checkpoint ${lamp}`, d: `M${x} ${area.bottom - 4}l4 4l-4 4l-4 -4z` }, svg("title", {}, text)));
    }
  }

  drawPins() {
    const layer = this.canvas.querySelector(".above");
    const unnamed = this.told.tall ? 1 : 0; // the first is named above its line
    for (const [began, , label, severity] of this.told.marks.slice(unnamed)) {
      const x = this.area.x(began);
      if (x < this.area.left - 1 || x > this.area.right + 1) continue;
      layer.append(svg("path", { class: `pin ${severity}`, d: `M${x - 5} ${this.area.top - 1}h10l-5 8z` },
        svg("title", {}, `${label}: since ${written(began)}. Click for the evidence`)));
    }
  }

  /* Go to the finding whose onset was clicked. */
  follow(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = (event.clientX - box.left) * (this.width / box.width);
    const mark = this.told.marks.find(([began]) => Math.abs(this.area.x(began) - x) <= PIN_PIXELS);
    if (mark && goToFinding(mark[2])) keepInAddress({ finding: mark[2] });
  }

  /* Save all points of a single curve, which the server has, or what is drawn of several. */
  saveTable() {
    const { view, told: { curves } } = this;
    const metric = curves.length === 1 && curves[0].metric;
    if (!metric) {
      super.saveTable();
      return;
    }
    const range = view.whole ? "" : `&first=${Math.floor(view.first)}&last=${Math.ceil(view.last)}`;
    save(fileName(this, "csv"), `/api/series.csv?key=${encodeURIComponent(view.data.key)}&metric=${encodeURIComponent(metric)}${range}`);
  }

  /* Fetch what a zoomed chart can show beyond the extremes of the whole run. */
  async refine() {
    if (!this.loaded) return;
    const reduced = this.told.curves.some((curve, at) => curve.points > this.base[at].steps.length);
    if (this.view.whole || !reduced) {
      if (this.detail) this.told.curves.forEach((curve, at) => this.view.columns.set(curve.column, this.base[at]));
      if (this.detail) this.stale();
      this.detail = false;
      return;
    }
    const [first, last] = [Math.floor(this.view.first), Math.ceil(this.view.last)];
    const answer = await this.view.fetch([this.name], `&first=${first}&last=${last}`);
    if (!answer?.charts.length || this.view.whole) return;
    answer.charts[0].curves.forEach((curve, at) =>
      this.view.columns.set(this.told.curves[at].column, unpackColumn(answer.columns[curve.column])));
    this.detail = true;
    this.stale();
  }

  append(points) {
    if (!this.loaded) return false;
    let grown = false;
    this.told.curves.forEach((curve, at) => {
      const more = points.get(curve.metric);
      if (!more) return;
      grown = true;
      const base = this.base[at] = joined(this.base[at], more);
      this.view.columns.set(curve.column, this.detail ? joined(this.view.columns.get(curve.column), more) : base);
      curve.points += more.steps.length;
      more.values.forEach((value) => {
        if (!Number.isFinite(value)) curve.bad[Number.isNaN(value) ? 0 : value > 0 ? 1 : 2]++;
      });
    });
    if (!grown) return false;
    const old = this.told.curves.some((curve, at) => curve.average !== null || this.base[at].steps.length > MOST_POINTS);
    if (old && this.seen && Date.now() - this.loaded > MEAN_MS) this.view.want(this);
    return true;
  }
}

function unpackColumn(told) {
  return { steps: unpackSteps(told.steps), values: unpackValues(told.values) };
}

function joined(first, second) {
  const steps = new Float64Array(first.steps.length + second.steps.length);
  const values = new Float64Array(steps.length);
  steps.set(first.steps);
  steps.set(second.steps, first.steps.length);
  values.set(first.values);
  values.set(second.values, first.values.length);
  return { steps, values };
}
