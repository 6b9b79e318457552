/* One chart: its frame, its curves, what stands on them, and what is read off at a point. */

const SMALL_CHART = 132; // pixels high
const ROOM = { left: 50, right: 12, top: 8, bottom: 22 }; // pixels around the curves
const NAMED = 12; // more of them above, where the onset is named
const PAPER = { tall: 660, small: 320 }; // pixels of a page's width, and of half of it
const FEW = 30; // points that are each marked
const EDGE = 4; // pixels around the curves' area in which a dot at its edge is still drawn

/* What the charts of one run share: the stretch that is in sight, and the step pointed at. */
class View {
  constructor(run, column) {
    Object.assign(this, { run, column, charts: new Set(), first: run.first, last: run.last, at: null });
    this.scale = run.scale ?? 1; // of the x-axis: hours for each millisecond
    this.named = null; // the curve that is pointed at in an overlay
  }

  /* Write a place on the x-axis. */
  tell(step) {
    if (this.scale === 1) return written(step);
    return `${written(Number((step * this.scale).toPrecision(6)))} ${this.run.unit.split(" ")[0]}`;
  }

  get whole() {
    return this.first <= this.run.first && this.last >= this.run.last;
  }

  show(first, last) {
    const span = Math.max(last - first, Math.min(2, this.run.last - this.run.first));
    first = Math.min(Math.max(first, this.run.first), this.run.last - span);
    this.first = Math.max(first, this.run.first);
    this.last = Math.min(this.first + span, this.run.last);
    this.redraw();
  }

  reset() {
    this.show(this.run.first, this.run.last);
  }

  point(step, named = null) {
    [this.at, this.named] = [step, named];
    for (const chart of this.charts) if (chart.seen) chart.drawPointer();
  }

  redraw() {
    for (const chart of this.charts) chart.stale();
  }
}

class Chart {
  constructor(place, told, view) {
    Object.assign(this, { place, told, view, kind: told.scale, seen: false, fresh: false });
    this.height = told.tall || SMALL_CHART;
    this.readout = html("output", { class: "readout", "aria-live": "off" });
    this.scaleButton = html("button", { type: "button", class: "scale" }, "log"); // until it is drawn
    this.resetButton = html("button", { type: "button", class: "reset", hidden: "" }, "whole run");
    this.canvas = svg("svg", { class: "curves", tabindex: "0", role: "img", "aria-label": told.title });
    this.under = html("div", { class: "chart-notes" });
    place.style.setProperty("--tall", `${this.height}px`);
    place.replaceChildren(
      html("div", { class: "chart-head" }, this.title(), this.readout, this.resetButton, this.scaleButton, exportMenu(this)),
      this.canvas, this.under,
    );
    view.charts.add(this);
    attachMoves(this);
  }

  title() {
    const made = html("span", { class: "chart-title" }, this.told.title);
    const { title, unit } = this.told;
    const said = unit === "1" || title.toLowerCase().endsWith(unit.toLowerCase());
    if (!said) made.append(html("span", { class: "unit" }, ` ${unit.replaceAll("^2", "²")}`));
    return made;
  }

  /* Say in words what is drawn, for who cannot see it. */
  words() {
    const quantiles = this.told.curves.filter((one) => one.quantile);
    const known = this.numbers(quantiles[quantiles.length >> 1] ?? this.told.curves[0]);
    const ends = known.length ? `${written(known[0])} to ${written(known.at(-1))}` : "no number";
    const marks = this.told.marks.map(([began, , label]) => `${label} since ${this.view.tell(began)}`);
    return [`${this.told.title}: ${ends}`, ...marks].join("; ");
  }

  numbers(curve) {
    return [...this.view.column(curve.column).values].filter(Number.isFinite);
  }

  /* Look at the whole of what is drawn, once: no zoom may change which scales there are. */
  learn() {
    const every = this.told.curves.flatMap((curve) => this.numbers(curve));
    const sizes = every.filter(Boolean).map(Math.abs).sort((a, b) => a - b);
    const positive = every.length > 0 && every.every((value) => value > 0);
    this.usual = this.told.scale === "asinh" ? this.told.width : sizes[sizes.length >> 1] || 1;
    this.other = this.told.scale !== "linear" ? "linear" : positive ? "log" : "asinh";
    this.canvas.setAttribute("aria-label", this.words());
  }

  stale() {
    this.fresh = false;
    if (this.seen) this.draw();
  }

  /* Draw what is in sight; the y-axis fits it. */
  draw(width = Math.floor(this.place.clientWidth)) {
    if (!width || (this.fresh && this.width === width)) return;
    Object.assign(this, { width, fresh: true });
    if (!this.other) this.learn();
    const found = this.told.curves.map((one) => {
      const column = this.view.column(one.column);
      return { one, column, inside: within(column.steps, this.view.first, this.view.last) };
    });
    const [low, high] = this.extent(found);
    this.scale = SCALES[this.kind](this.usual);
    const area = (this.area = this.layOut(width, low, high));
    const layers = ["grid", "below", "lines", "above", "pointer"].map((name) => svg("g", { class: name }));
    const [grid, below, lines, above, pointer] = layers;
    this.pointer = pointer;
    if (Number.isFinite(low)) this.drawAxes(grid, area);
    else grid.append(svg("text", { class: "none", x: width / 2, y: this.height / 2 }, "no number here"));
    drawSeams(below, this.view.run.seams, area);
    drawHealthy(below, this.told, area);
    drawFindings(below, this, area);
    if (this.told.groups) drawGroups(below, this.told, area);
    const { groups, bands: means = [], onsets = [] } = this.told;
    const forms = { overlaid: Boolean(groups), banded: means.length > 0, "many-bands": means.length > CLEAR_BANDS, "many-onsets": onsets.length > CLEAR_ONSETS };
    for (const [name, on] of Object.entries(forms)) this.place.classList.toggle(name, on);
    drawLimits(above, this.told, area);
    const bands = found.filter(({ one }) => one.quantile);
    if (bands.length) drawBands(lines, bands, area, this.height);
    const median = bands[bands.length >> 1];
    // Grey curves lie under the others.
    for (const curve of [...found].sort((a, b) => (b.one.part >= STYLED) - (a.one.part >= STYLED))) {
      if (curve === median || !curve.one.quantile) this.drawCurve(lines, above, curve, area);
    }
    if (this.told.groups) drawOnsets(above, this);
    this.canvas.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    this.canvas.replaceChildren(...layers);
    this.tell(area);
    this.drawPointer();
  }

  /* Draw for paper, as wide as it is, whatever the screen. */
  print() {
    this.draw(this.told.tall ? PAPER.tall : PAPER.small);
  }

  extent(found) {
    let [low, high] = [Infinity, -Infinity];
    for (const { column, inside: [begin, end] } of found) {
      const [bottom, top] = range(column.values, begin, end);
      [low, high] = [Math.min(low, bottom), Math.max(high, top)];
    }
    return low <= high ? [low, high] : [NaN, NaN];
  }

  layOut(width, low, high) {
    const { first, last } = this.view;
    const named = this.told.tall && this.told.marks.length;
    const box = {
      left: ROOM.left, right: width - ROOM.right,
      top: ROOM.top + (named ? NAMED : 0), bottom: this.height - ROOM.bottom,
    };
    const reach = ends(this.told, this.scale, low, high);
    const { floor, ceiling } = reach;
    const span = last - first || 1;
    return {
      ...box, ...reach,
      x: (step) => box.left + ((step - first) / span) * (box.right - box.left),
      y: (value) => box.bottom - ((this.scale.to(value) - floor) / (ceiling - floor)) * (box.bottom - box.top),
      step: (x) => first + ((x - box.left) / (box.right - box.left)) * span,
    };
  }

  drawAxes(layer, area) {
    const tall = area.bottom - area.top;
    const ticks = this.scale.ticks(area, tall > 150 ? 6 : 3);
    const texts = this.scale.labels(ticks);
    const used = [];
    // Zero first, then what is far from it: a compressed scale has no room for all.
    const order = [...ticks.keys()].sort((a, b) => !ticks[b] - !ticks[a] || Math.abs(ticks[b]) - Math.abs(ticks[a]));
    for (const at of order) {
      const y = area.y(ticks[at]);
      if (y < area.top - 1 || y > area.bottom + 1 || used.some((other) => Math.abs(other - y) < 13)) continue;
      used.push(y);
      layer.append(
        svg("line", { x1: area.left, x2: area.right, y1: y, y2: y }),
        svg("text", { x: area.left - 6, y: y + 3.5, "text-anchor": "end" }, texts[at]),
      );
    }
    const { first, last } = this.view;
    const { scale } = this.view;
    const steps = linearTicks(first * scale, last * scale, Math.max(3, Math.floor((area.right - area.left) / 95)), scale === 1);
    const names = labels(steps);
    steps.forEach((tick, at) => {
      const x = area.x(tick / scale);
      const anchor = x > area.right - 14 ? "end" : x < area.left + 14 ? "start" : "middle";
      layer.append(svg("line", { class: "tick", x1: x, x2: x, y1: area.bottom, y2: area.bottom + 4 }));
      layer.append(svg("text", { x, y: area.bottom + 16, "text-anchor": anchor }, names[at]));
    });
    layer.append(svg("line", { class: "base", x1: area.left, x2: area.right, y1: area.bottom, y2: area.bottom }));
  }

  drawCurve(lines, above, { one, column, inside: [begin, end] }, area) {
    const { first, last } = this.view;
    const kept = extremes(column, begin, end, first, last, Math.max(1, Math.round(area.right - area.left)));
    const xs = kept.map((at) => area.x(column.steps[at]));
    const ys = kept.map((at) => area.y(column.values[at]));
    const colour = colourOf(one.part);
    const averaged = one.average !== null;
    const [left, wide] = [area.left - EDGE, Math.max(1, area.right - area.left) + 2 * EDGE];
    const clipped = svg("svg", {
      x: left, y: 0, width: wide, height: this.height, viewBox: `${left} 0 ${wide} ${this.height}`,
      "data-part": one.part, "data-curve": this.told.curves.indexOf(one),
    });
    clipped.append(svg("path", { class: `line ${colour}${averaged ? " raw" : ""}`, d: path(xs, ys) }));
    const crowded = this.told.groups && this.told.curves.length > LISTED;
    const dots = kept.length <= FEW && !crowded ? kept.keys() : lonely(ys);
    for (const at of dots) {
      if (Number.isFinite(ys[at])) clipped.append(svg("circle", { class: `dot ${colour}`, cx: xs[at], cy: ys[at], r: 2.5 }));
    }
    if (averaged) {
      const mean = this.view.column(one.average);
      const [from, to] = within(mean.steps, first, last);
      const at = Array.from({ length: to - from }, (_, i) => from + i);
      clipped.append(svg("path", {
        class: `line mean ${colour}`,
        d: path(at.map((i) => area.x(mean.steps[i])), at.map((i) => area.y(mean.values[i]))),
      }));
    }
    lines.append(clipped);
    drawBad(above, column, kept, area);
  }

  /* Say under the chart what the curves are, and what cannot be seen of them. */
  tell(area) {
    const several = this.told.curves.length > 1;
    const curves = this.told.curves.filter((one) => !one.quantile);
    const names = this.told.groups ? (this.told.tall ? groupNames(this) : []) : several ? curves.map((one) =>
      html("span", { class: `key ${colourOf(one.part)}` }, one.label)) : [];
    if (curves.length < this.told.curves.length) names.unshift(html("span", {}, "median, and bands of 25–75 %, 5–95 % and all"));
    const said = notes(this.told, area.far);
    if (this.scale.name) said.unshift(this.scale.name);
    if (!this.view.whole && this.reduced()) said.push("of a longer log: each column's extremes");
    const steps = this.told.tall ? [html("span", { class: "steps" }, this.view.run.unit)] : [];
    this.under.replaceChildren(...names, ...said.map((text) => html("span", {}, text)), ...steps);
    const other = this.nextScale();
    this.scaleButton.textContent = other === "linear" ? "linear" : "log";
    this.scaleButton.title = `switch the y-axis to ${SCALES[other](1).name || "linear"} (key: l)`;
    this.resetButton.hidden = this.view.whole;
  }

  reduced() {
    return this.told.curves.some((one) => one.points > this.view.column(one.column).steps.length);
  }

  nextScale() {
    return this.kind === this.told.scale ? this.other : this.told.scale;
  }

  switchScale() {
    this.kind = this.nextScale();
    this.stale();
  }

  /* Draw the line of the step that is pointed at, and tell each curve's nearest value. */
  drawPointer() {
    if (!this.pointer) return;
    this.pointer.replaceChildren();
    const step = this.view.at;
    if (step === null || step < this.view.first || step > this.view.last) {
      this.readout.textContent = "";
      this.emphasize(null);
      return;
    }
    const { area } = this;
    const said = [];
    let here = null;
    const { curves, groups } = this.told;
    const picked = groups && curves.length > LISTED ? curves.filter((one) => one.label === this.view.named) : curves;
    for (const one of picked.length ? picked : curves.slice(0, 1)) {
      const column = this.view.column(one.column);
      const at = nearest(column.steps, step, this.view.first, this.view.last);
      if (at < 0) continue;
      here ??= column.steps[at];
      if (!picked.length) break; // only the step is told
      const value = column.values[at];
      const isNamed = curves.length > 1 && (this.told.tall || !groups);
      said.push(isNamed ? `${one.label} ${written(value)}` : written(value));
      const y = area.y(value);
      if (Number.isFinite(y) && !one.quantile) {
        this.pointer.append(svg("circle", { class: `dot ${colourOf(one.part)}`, cx: area.x(column.steps[at]), cy: y, r: 3.5 }));
      }
    }
    if (here === null) return;
    const x = area.x(here);
    this.pointer.prepend(svg("line", { x1: x, x2: x, y1: area.top, y2: area.bottom }));
    this.readout.textContent = [this.view.tell(here), said.join(" · ")].filter(Boolean).join(": ");
    if (picked.length === 1 && groups && this.canvas.matches(":hover, :focus")) nameNear(this, picked[0], here);
    const number = picked.length === 1 && curves.length > LISTED ? String(curves.indexOf(picked[0])) : null;
    this.emphasize(number === null ? null : (curve) => curve.dataset.curve === number);
  }

  /* Draw the curves that `isNear` accepts before the others; null: all alike. */
  emphasize(isNear) {
    this.canvas.classList.toggle("dimmed", isNear !== null);
    const parts = new Set();
    const marked = [...this.canvas.querySelectorAll("[data-part]")];
    for (const curve of marked) {
      const near = isNear?.(curve) ?? false;
      curve.classList.toggle("near", near);
      if (near) parts.add(curve.dataset.part);
    }
    for (const band of marked) if (band.matches(".band, .middle")) band.classList.toggle("near", parts.has(band.dataset.part));
  }

  saveTable() {
    saveDrawn(this);
  }
}
