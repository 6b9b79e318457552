/* What stands on the curves: findings, limits, seams, and numbers that are none. */

const APART = 7; // pixels between two signs: nearer ones are one

/* Fill the bands between quantiles, the outermost first. */
function drawBands(layer, quantiles, area, height) {
  const wide = Math.max(1, area.right - area.left);
  const clipped = svg("svg", { x: area.left, y: 0, width: wide, height, viewBox: `${area.left} 0 ${wide} ${height}` });
  for (let depth = 0; depth < quantiles.length >> 1; depth++) {
    const { column: low, inside: [begin, end] } = quantiles[depth];
    const high = quantiles[quantiles.length - 1 - depth].column;
    const outline = outlineOf(low.steps, low.values, high.values, begin, end, area);
    if (outline) clipped.append(svg("path", { class: `quantile depth${depth}`, d: outline }));
  }
  layer.append(clipped);
}

/* Return the outline of the area between two curves of common steps; "" without a number. */
function outlineOf(steps, low, high, begin, end, area) {
  const places = Array.from({ length: end - begin }, (_, at) => begin + at).filter((at) => Number.isFinite(low[at]) && Number.isFinite(high[at]));
  if (!places.length) return "";
  const there = places.map((at) => `${area.x(steps[at]).toFixed(1)} ${area.y(high[at]).toFixed(1)}`);
  const back = places.map((at) => `${area.x(steps[at]).toFixed(1)} ${area.y(low[at]).toFixed(1)}`).reverse();
  return `M${[...there, ...back].join("L")}Z`;
}

/* Shade the range in which the metric is healthy; one that holds all in sight tells nothing. */
function drawHealthy(layer, told, area) {
  if (!told.band) return;
  const [low, high] = told.band;
  const top = high === null ? area.top : Math.max(area.y(high), area.top);
  const bottom = low === null || !Number.isFinite(area.y(low)) ? area.bottom : Math.min(area.y(low), area.bottom);
  if (!(bottom - top > 1) || bottom - top > 0.93 * (area.bottom - area.top)) return;
  const words = `healthy: ${low === null ? "" : `from ${written(low)} `}${high === null ? "" : `up to ${written(high)}`}`;
  layer.prepend(svg("rect", {
    class: "healthy", x: area.left, y: top, width: area.right - area.left, height: bottom - top,
  }, svg("title", {}, words)));
}

/* Shade the stretch of each finding, with a line where it began. */
function drawFindings(layer, { told: chart, view }, area) {
  for (const [began, ended, label, severity] of [...chart.marks].reverse()) {
    const [left, right] = [area.x(began), Math.max(area.x(ended), area.x(began) + 2)];
    const [from, to] = [Math.max(left, area.left), Math.min(right, area.right)];
    if (from > area.right || to < area.left) continue;
    const title = svg("title", {}, `${label}: from ${view.tell(began)} to ${view.tell(ended)}`);
    layer.append(
      svg("rect", {
        class: `found ${severity}`, x: from, y: area.top,
        width: Math.max(to - from, 2), height: area.bottom - area.top,
      }, title),
    );
    if (left >= area.left) {
      layer.append(svg("line", { class: `onset ${severity}`, x1: left, x2: left, y1: area.top, y2: area.bottom }));
    }
  }
  nameOnset(layer, chart, area);
}

/* Write where the first finding began above its line; a small chart has no room. */
function nameOnset(layer, chart, area) {
  if (!chart.tall || !chart.marks.length) return;
  const [began, , , severity] = chart.marks[0];
  const at = area.x(began);
  if (at < area.left || at > area.right) return;
  const before = at > area.left + 0.85 * (area.right - area.left);
  layer.append(svg("text", {
    class: `onset-name ${severity}`, x: at + (before ? 3 : -3), y: area.top - 5,
    "text-anchor": before ? "end" : "start",
  }, `▼ since ${written(began)}`));
}

function drawLimits(layer, chart, area) {
  for (const [value, label] of chart.limits) {
    const at = area.y(value);
    if (!Number.isFinite(at) || at < area.top - 1 || at > area.bottom + 1) continue;
    const above = at > area.top + 16;
    const fits = chart.tall && 6 * label.length < area.right - area.left; // pixels of a letter
    layer.append(
      svg("line", { class: "limit", x1: area.left, x2: area.right, y1: at, y2: at }),
      svg("text", {
        class: "limit-name", x: area.right - 3, y: at + (above ? -4 : 13), "text-anchor": "end",
      }, fits ? label : written(value), svg("title", {}, label)),
    );
  }
}

function drawSeams(layer, seams, area) {
  for (const seam of seams) {
    const at = area.x(seam);
    if (at < area.left || at > area.right) continue;
    layer.append(svg("line", { class: "seam", x1: at, x2: at, y1: area.top, y2: area.bottom },
      svg("title", {}, `resumed at ${written(seam)}`)));
  }
}

/* Mark NaN with a cross below, infinities with an arrow at their side. */
function drawBad(layer, column, places, area) {
  const last = {};
  for (const at of places) {
    const value = column.values[at];
    if (Number.isFinite(value)) continue;
    const kind = Number.isNaN(value) ? "nan" : value > 0 ? "above" : "below";
    const x = area.x(column.steps[at]);
    if (x < area.left || x > area.right || x - (last[kind] ?? -Infinity) < APART) continue;
    last[kind] = x;
    const y = kind === "above" ? area.top + 6 : area.bottom - 6;
    const shapes = {
      nan: `M${x - 3} ${y - 3}l6 6m0 -6l-6 6`,
      above: `M${x - 4} ${y + 3}h8l-4 -7z`,
      below: `M${x - 4} ${y - 3}h8l-4 7z`,
    };
    const words = { nan: "NaN", above: "+∞", below: "−∞" };
    layer.append(svg("path", { class: `bad ${kind}`, d: shapes[kind] },
      svg("title", {}, `${words[kind]} at ${written(column.steps[at])}`)));
  }
}

/* Say what cannot be seen: how many numbers are none, limits out of sight, points left out. */
function notes(chart, far) {
  const said = [];
  const names = ["NaN", "+∞", "−∞"];
  const bad = [0, 1, 2].map((at) => chart.curves.reduce((sum, one) => sum + one.bad[at], 0));
  bad.forEach((count, at) => count && said.push(`${written(count)} × ${names[at]}`));
  for (const label of far) said.push(`${label}: out of sight`);
  return said;
}
