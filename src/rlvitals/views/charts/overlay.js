/* The curves of several runs in one chart, in their groups' colours, with the groups' bands. */

class Overlay extends Chart {
  constructor(place, told, view) {
    super(place, told, view);
    place.classList.add("overlaid");
    place.classList.toggle("single", !told.bands.length); // no mean is drawn over the runs
  }

  draw(width) {
    if (this.fresh && this.width === (width ?? Math.floor(this.place.clientWidth))) return;
    super.draw(width);
    if (!this.area) return;
    const layer = this.canvas.querySelector(".below");
    const { area } = this;
    const clip = svg("svg", { x: area.left, y: area.top, width: area.right - area.left, height: area.bottom - area.top,
      viewBox: `${area.left} ${area.top} ${area.right - area.left} ${area.bottom - area.top}` });
    // A log scale has no place for an end at or below 0: it lies under the chart.
    const edge = (value) => {
      const y = area.y(value);
      return (Number.isFinite(y) ? Math.min(Math.max(y, area.top - EDGE), area.bottom + EDGE) : area.bottom + EDGE).toFixed(1);
    };
    for (const band of this.told.bands) {
      const xs = band.steps.map((step) => area.x(step));
      const there = band.high.map((value, at) => `${xs[at].toFixed(1)} ${edge(value)}`);
      const back = band.low.map((value, at) => `${xs[at].toFixed(1)} ${edge(value)}`).reverse();
      clip.append(svg("path", { class: `band curve${band.part % 8}`, d: `M${[...there, ...back].join("L")}Z` }));
      clip.append(svg("path", { class: `line middle curve${band.part % 8}`, d: path(xs, band.middle.map((value) => area.y(value))) }));
    }
    layer.append(clip);
    this.under.querySelectorAll(".key").forEach((key) => key.remove());
    this.under.prepend(...this.told.groups.map((name, at) => html("span", { class: `key curve${at % 8}` }, name)));
  }
}
