/* Charts of layers: shares and parts as stacked areas. */

class LayeredChart extends LiveChart {
  constructor(place, name, view) {
    super(place, name, view);
    this.form = view.data.charts[name].form;
    this.scaleButton.hidden = true;
  }

  /* Return the layers as { curve, steps, low, high }, the undermost first. */
  layers() {
    const columns = this.told.curves.map((curve) => this.view.column(curve.column));
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
    this.stack.forEach((layer) => {
      const [begin, end] = within(layer.steps, this.view.first, this.view.last);
      const outline = outlineOf(layer.steps, layer.low, layer.high, begin, end, area);
      if (outline) clipped.append(svg("path", { class: `layer fill${layer.part % 8}`, d: outline }));
    });
    lines.append(clipped);
  }

  /* The heights of what is stacked are no values: no dot stands on them. */
  drawPointer() {
    super.drawPointer();
    this.pointer?.querySelectorAll(".dot").forEach((dot) => dot.remove());
  }
}
