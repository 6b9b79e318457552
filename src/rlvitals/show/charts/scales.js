/* How values become heights: linear, logarithmic, or linear near zero and logarithmic beyond. */

const DOMINATES = 8; // times what is drawn: a limit as far off is told, not drawn
const AIR = 0.06; // of the height, above and below the curves
const SAME = 1e-6; // of its size: a curve that varies by less is drawn as constant

const SCALES = {
  linear: () => ({ name: "", to: (value) => value, ticks: linearTicks, labels }),
  log: () => ({
    name: "log scale",
    to: (value) => value > 0 ? Math.log10(value) : -Infinity,
    ticks: decadeTicks,
    labels: (ticks) => ticks.map(alone),
  }),
  asinh: (width) => ({
    name: "compressed scale",
    to: (value) => Math.asinh(value / width),
    ticks: (low, high, most) => bothSides(low, high, most, width),
    labels: (ticks) => ticks.map(alone),
  }),
};

/* Return zero and the decades on either side of it that lie beyond the linear part. */
function bothSides(low, high, most, width) {
  const ticks = low <= 0 && high >= 0 ? [0] : [];
  const room = Math.max(2, most - 1);
  const far = Math.max(Math.abs(low), Math.abs(high));
  if (far <= width) return linearTicks(low, high, most);
  for (const tick of decadeTicks(10 ** Math.floor(Math.log10(width)), far, room)) {
    if (tick <= high && tick >= low) ticks.push(tick);
    if (-tick >= low && -tick <= high) ticks.push(-tick);
  }
  return ticks.sort((a, b) => a - b);
}

/* Return the other scale that a chart can be switched to. */
function otherScale(told, lowest) {
  if (told !== "linear") return "linear";
  return lowest > 0 ? "log" : "asinh";
}

function near(value, low, high) {
  const size = Math.max(Math.abs(low), Math.abs(high), high - low);
  return value >= low - DOMINATES * size && value <= high + DOMINATES * size;
}

/* Return the ends of the y-axis for what is in sight, and the limits that are too far to draw. */
function ends(chart, kind, low, high) {
  const reached = [], far = [];
  for (const [value, label] of chart.limits) {
    const fits = Number.isFinite(value) && near(value, low, high) && (kind !== "log" || value > 0);
    if (fits) reached.push(value);
    else far.push(label);
  }
  [low, high] = [Math.min(low, ...reached), Math.max(high, ...reached)];
  if (kind === "log") return { low: low / 1.3, high: high * 1.3, far };
  const same = high - low <= SAME * Math.max(Math.abs(low), Math.abs(high));
  const air = same ? 0.5 * Math.abs(high) || 0.5 : AIR * (high - low);
  if (kind === "asinh") return { low: low - air, high: high + air, far };
  let [bottom, top] = [low - air, high + air];
  if (chart.low !== null && low >= chart.low) bottom = Math.max(bottom, chart.low - 0.02 * (top - bottom));
  if (chart.high !== null && high <= chart.high) top = Math.min(top, chart.high + 0.02 * (top - bottom));
  return { low: bottom, high: top, far };
}
