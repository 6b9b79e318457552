/* How a chart is moved: dragging zooms, the wheel too where the chart has the focus, keys as well. */

const DRAGGED = 5; // pixels: less is a click
const IN = 0.7; // of the stretch that is in sight

function attachMoves(chart) {
  const { canvas, view } = chart;
  let from = null;
  const x = (event) => {
    const box = canvas.getBoundingClientRect();
    return (event.clientX - box.left) * (chart.width / box.width);
  };
  // Of many curves, the one that is pointed at is told.
  const named = (event) => {
    const box = canvas.getBoundingClientRect();
    const y = (event.clientY - box.top) * (chart.height / box.height);
    return chart.told.curves[nearestCurve(chart, chart.area.step(inside(x(event))), y)]?.label ?? null;
  };
  const inside = (at) => Math.min(Math.max(at, chart.area.left), chart.area.right);

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    from = inside(x(event));
    if (event.pointerType === "mouse") canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = inside(x(event));
    view.point(chart.area.step(at), chart.told.groups ? named(event) : null);
    if (from !== null && Math.abs(at - from) >= DRAGGED) drawSelection(chart, from, at);
  });
  canvas.addEventListener("pointerup", (event) => {
    const at = inside(x(event));
    const [began, dragged] = [from, from !== null && Math.abs(at - from) >= DRAGGED];
    from = null;
    if (dragged) view.show(...[chart.area.step(began), chart.area.step(at)].sort((a, b) => a - b));
  });
  canvas.addEventListener("pointercancel", () => { from = null; chart.drawPointer(); });
  // A finger that is lifted leaves too: what it pointed at stays.
  canvas.addEventListener("pointerleave", (event) => {
    if (from === null && event.pointerType === "mouse") view.point(null);
  });
  canvas.addEventListener("dblclick", () => view.reset());
  canvas.addEventListener("wheel", (event) => wheel(chart, event, x(event)), { passive: false });
  canvas.addEventListener("keydown", (event) => key(chart, event));
  // Told aloud is what keys point at in this chart, not what a mouse does in all of them.
  canvas.addEventListener("focus", () => chart.readout.setAttribute("aria-live", "polite"));
  canvas.addEventListener("blur", () => chart.readout.setAttribute("aria-live", "off"));
  chart.resetButton.addEventListener("click", () => view.reset());
  chart.scaleButton.addEventListener("click", () => chart.switchScale());
}

function drawSelection(chart, from, to) {
  const { area, pointer } = chart;
  pointer.append(svg("rect", {
    class: "selection", x: Math.min(from, to), width: Math.abs(to - from),
    y: area.top, height: area.bottom - area.top,
  }));
}

/* Zoom by `factor` around a step. */
function zoom(view, step, factor) {
  view.show(step - (step - view.first) * factor, step + (view.last - step) * factor);
}

/* A page is scrolled by the wheel: a chart takes it where it was clicked, or with Ctrl. */
function wheel(chart, event, at) {
  if (!event.ctrlKey && !event.metaKey && document.activeElement !== chart.canvas) return;
  if (event.deltaY > 0 && chart.view.whole) return;
  event.preventDefault();
  zoom(chart.view, chart.area.step(at), event.deltaY < 0 ? IN : 1 / IN);
}

function key(chart, event) {
  const { view } = chart;
  const span = view.last - view.first;
  const here = view.at ?? (view.first + view.last) / 2;
  const moves = {
    ArrowLeft: () => event.shiftKey ? view.show(view.first - 0.2 * span, view.last - 0.2 * span) : beside(chart, here, -1),
    ArrowRight: () => event.shiftKey ? view.show(view.first + 0.2 * span, view.last + 0.2 * span) : beside(chart, here, 1),
    Home: () => view.point(view.first, view.named),
    End: () => view.point(view.last, view.named),
    ArrowUp: () => nextCurve(chart, here, -1),
    ArrowDown: () => nextCurve(chart, here, 1),
    "+": () => zoom(view, here, IN),
    "=": () => zoom(view, here, IN),
    "-": () => zoom(view, here, 1 / IN),
    0: () => view.reset(),
    Escape: () => view.reset(),
    l: () => chart.switchScale(),
  };
  if (!chart.told.groups) delete moves.ArrowUp, delete moves.ArrowDown; // they scroll
  const move = event.ctrlKey || event.metaKey || event.altKey ? null : moves[event.key];
  if (!move) return;
  event.preventDefault();
  move();
}

/* Point at the next value, or the one before. */
function beside(chart, step, by) {
  const { steps } = chart.view.column(chart.told.curves[0].column);
  const pixel = (chart.view.last - chart.view.first) / Math.max(1, chart.width);
  let at = nearest(steps, step);
  const here = steps[at];
  while (steps[at + by] !== undefined && Math.abs(steps[at] - here) < pixel) at += by;
  chart.view.point(steps[at], chart.view.named);
}

/* Tell the next curve of an overlay, in the order of its names. */
function nextCurve(chart, step, by) {
  const { curves } = chart.told;
  const at = curves.findIndex((one) => one.label === chart.view.named);
  chart.view.point(step, curves[Math.min(Math.max(at + by, 0), curves.length - 1)].label);
}

/* Draw charts as they come into sight, and anew where their width has changed. */
function watchCharts(charts) {
  const sight = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const chart = charts.get(entry.target);
      chart.seen = entry.isIntersecting;
      if (chart.seen) chart.draw();
    }
  }, { rootMargin: "400px" });
  const size = new ResizeObserver((entries) => {
    for (const entry of entries) {
      const chart = charts.get(entry.target);
      if (chart.seen) chart.draw();
    }
  });
  for (const place of charts.keys()) {
    sight.observe(place);
    size.observe(place);
  }
}
