/* The curves of several runs in one chart: the groups' bands, findings, and the run pointed at. */

const NEAR_PIXELS = 40; // around the pointer in which a curve is named
const STYLED = 24; // groups with a colour and a style of their own; the rest is grey
const CLEAR_BANDS = 8, CLEAR_ONSETS = 12; // of a chart: with more, those of the group pointed at are drawn
const LISTED = 3; // curves of an overlay whose values are all told

/* Return the classes of a curve: eight colours, each also dashed and dotted, and grey beyond. */
function colourOf(part) {
  const style = Math.floor(part / 8);
  return part >= STYLED ? "rest" : `curve${part % 8}${style ? ` dash${style}` : ""}`;
}

/* Draw the mean of each group with its interval. */
function drawGroups(layer, told, area) {
  const clip = svg("svg", { x: area.left, y: area.top, width: Math.max(1, area.right - area.left), height: area.bottom - area.top,
    viewBox: `${area.left} ${area.top} ${Math.max(1, area.right - area.left)} ${area.bottom - area.top}` });
  // A log scale has no place for an end at or below 0: it lies under the chart.
  const edge = (value) => {
    const y = area.y(value);
    return (Number.isFinite(y) ? Math.min(Math.max(y, area.top - EDGE), area.bottom + EDGE) : area.bottom + EDGE).toFixed(1);
  };
  for (const band of told.bands) {
    const xs = band.steps.map((step) => area.x(step));
    const there = band.high.map((value, at) => `${xs[at].toFixed(1)} ${edge(value)}`);
    const back = band.low.map((value, at) => `${xs[at].toFixed(1)} ${edge(value)}`).reverse();
    const colour = colourOf(band.part);
    clip.append(svg("path", { class: `band ${colour}`, d: `M${[...there, ...back].join("L")}Z`, "data-part": band.part }));
    clip.append(svg("path", { class: `line middle ${colour}`, d: path(xs, band.middle.map((value) => area.y(value))), "data-part": band.part }));
  }
  layer.append(clip);
}

/* Mark on its curve where the first finding of each run began. */
function drawOnsets(layer, chart) {
  const { area, told, view } = chart;
  for (const [began, index, rule, severity] of told.onsets) {
    const curve = told.curves[index];
    const column = view.column(curve.column);
    const at = nearest(column.steps, began);
    const [x, y] = [area.x(began), at < 0 ? NaN : area.y(column.values[at])];
    if (x < area.left || x > area.right) continue;
    const tip = Number.isFinite(y) ? Math.min(Math.max(y, area.top + 8), area.bottom) : area.bottom;
    layer.append(svg("path", { class: `pin ${severity}`, d: `M${x - 5} ${tip - 10}h10l-5 8z`, "data-part": curve.part, "data-curve": index },
      svg("title", {}, `${curve.label}: ${rule} since ${view.tell(began)}`)));
  }
}

/* Name the groups under the chart; those that are grey are counted. */
function groupNames(chart) {
  const { groups } = chart.told;
  const keys = groups.slice(0, STYLED).map((name, part) => html("span", { class: `key ${colourOf(part)}` }, name));
  if (groups.length > STYLED) keys.push(html("span", { class: "key rest" }, `${groups.length - STYLED} more`));
  emphasizeByName(keys, [chart]);
  return keys;
}

/* Name a curve at the point that is read off. */
function nameNear(chart, curve, step) {
  const { area, pointer, view } = chart;
  const column = view.column(curve.column);
  const [x, y] = [area.x(step), area.y(column.values[nearest(column.steps, step)])];
  if (!Number.isFinite(y)) return;
  const isLeft = x > (area.left + area.right) / 2;
  pointer.append(svg("text", { class: "near-name", x: x + (isLeft ? -8 : 8), y: Math.max(y - 8, area.top + 10), "text-anchor": isLeft ? "end" : "start" }, curve.label));
}

/* Draw a group's curves before the others for who points at its name. */
function emphasizeByName(keys, charts) {
  keys.forEach((key, part) => {
    const show = (isNear) => { for (const chart of charts) if (chart.told.groups) chart.emphasize(isNear); };
    key.addEventListener("pointerenter", () => show((curve) => Math.min(curve.dataset.part, STYLED) === part));
    key.addEventListener("pointerleave", () => show(null));
  });
}

/* Return the number of the curve that is nearest to a height at a step; -1 where none is near. */
function nearestCurve(chart, step, y) {
  const { area, told, view } = chart;
  const distances = told.curves.map((one) => {
    const column = view.column(one.column);
    const at = nearest(column.steps, step);
    const distance = at < 0 ? NaN : Math.abs(area.y(column.values[at]) - y);
    // A curve that ended is not what is pointed at.
    return Number.isFinite(distance) && Math.abs(area.x(column.steps[at]) - area.x(step)) < NEAR_PIXELS ? distance : Infinity;
  });
  const least = Math.min(...distances);
  return least < NEAR_PIXELS ? distances.indexOf(least) : -1;
}
