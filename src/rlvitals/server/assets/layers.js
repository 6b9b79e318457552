/* Charts of layers: shares and parts as stacked areas, the quantiles of a distribution as bands. */

class LayeredChart extends LiveChart {
  constructor(place, name, view) {
    super(place, name, view);
    this.form = view.data.charts[name].form;
    this.scaleButton.hidden = true;
  }

  /* Return the layers as { curve, steps, low, high }, the undermost first. */
  layers() {
    const columns = this.told.curves.map((curve) => this.view.column(curve.column));
    if (this.form === "bands") {
      return Array.from({ length: columns.length >> 1 }, (_, at) => ({
        part: 0, steps: columns[at].steps, low: columns[at].values, high: columns[columns.length - 1 - at].values,
      }));
    }
    const { steps } = columns.reduce((longest, one) => one.steps.length > longest.steps.length ? one : longest);
    let [above, below] = [new Float64Array(steps.length), new Float64Array(steps.length)];
    return columns.map((column, part) => {
      const [low, high] = [new Float64Array(steps.length), new Float64Array(steps.length)];
      const [top, bottom] = [above.slice(), below.slice()];
      steps.forEach((step, at) => {
        const index = nearest(column.steps, step);
        const value = index < 0 || !Number.isFinite(column.values[index]) ? 0 : column.values[index];
        const base = value < 0 ? below[at] : above[at];
        [low[at], high[at]] = [Math.min(base, base + value), Math.max(base, base + value)];
        if (value < 0) bottom[at] += value;
        else top[at] += value;
      });
      [above, below] = [top, bottom];
      return { part, steps, low, high };
    });
  }

  extent(found) {
    this.stack = this.layers();
    const { first, last } = this.view;
    let [low, high] = [Infinity, -Infinity];
    for (const { steps, low: bottoms, high: tops } of this.stack) {
      const [begin, end] = within(steps, first, last);
      low = Math.min(low, range(bottoms, begin, end)[0]);
      high = Math.max(high, range(tops, begin, end)[1]);
    }
    if (this.form === "shares") [low, high] = [0, 1];
    return low <= high ? [low, high] : super.extent(found);
  }

  drawCurve(lines, above, { one }, area) {
    if (one !== this.told.curves[0]) return;
    const clipped = svg("svg", { x: area.left, y: 0, width: Math.max(1, area.right - area.left), height: this.height,
      viewBox: `${area.left} 0 ${Math.max(1, area.right - area.left)} ${this.height}` });
    this.stack.forEach((layer, depth) => {
      const [begin, end] = within(layer.steps, this.view.first, this.view.last);
      const places = Array.from({ length: end - begin }, (_, at) => begin + at).filter((at) => Number.isFinite(layer.low[at]) && Number.isFinite(layer.high[at]));
      if (!places.length) return;
      const there = places.map((at) => `${area.x(layer.steps[at]).toFixed(1)} ${area.y(layer.high[at]).toFixed(1)}`);
      const back = places.map((at) => `${area.x(layer.steps[at]).toFixed(1)} ${area.y(layer.low[at]).toFixed(1)}`).reverse();
      const look = this.form === "bands" ? `quantile depth${depth}` : "layer";
      clipped.append(svg("path", { class: `${look} fill${layer.part % 8}`, d: `M${[...there, ...back].join("L")}Z` }));
    });
    if (this.form === "bands") {
      const { steps, values } = this.view.column(this.told.curves[this.told.curves.length >> 1].column);
      const [begin, end] = within(steps, this.view.first, this.view.last);
      const places = Array.from({ length: end - begin }, (_, at) => begin + at);
      clipped.append(svg("path", { class: "line curve0", d: path(places.map((at) => area.x(steps[at])), places.map((at) => area.y(values[at]))) }));
    }
    lines.append(clipped);
  }

  tell(area) {
    super.tell(area);
    if (this.form !== "bands") return;
    this.under.querySelectorAll(".key").forEach((key) => key.remove());
    this.under.prepend(html("span", {}, "median, and bands of 25–75 %, 5–95 % and all"));
  }

  /* The heights of what is stacked are no values: no dot stands on them. */
  drawPointer() {
    super.drawPointer();
    this.pointer?.querySelectorAll(".dot").forEach((dot) => dot.remove());
  }
}
