/* How values become heights: linear, logarithmic, or linear near zero and logarithmic beyond. */

const DOMINATES = 8; // times what is drawn: a limit as far off is told, not drawn
const AIR = 0.06; // of the height, above and below the curves
const SAME = 1e-6; // of its size: a curve that varies by less is drawn as constant

const SCALES = {
  linear: () => ({
    name: "",
    to: (value) => value,
    ticks: ({ floor, ceiling }, most) => linearTicks(floor, ceiling, most),
    labels,
  }),
  log: () => ({
    name: "log scale",
    to: (value) => value > 0 ? Math.log10(value) : -Infinity,
    ticks: ({ floor, ceiling }, most) => decadeTicks(10 ** floor, 10 ** ceiling, most),
    labels: (ticks) => ticks.map(alone),
  }),
  asinh: (width) => ({
    name: "compressed scale",
    to: (value) => Math.asinh(value / width),
    ticks: ({ low, high }, most) => bothSides(low, high, most, width),
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

function near(value, low, high) {
  const size = Math.max(Math.abs(low), Math.abs(high), high - low);
  return value >= low - DOMINATES * size && value <= high + DOMINATES * size;
}

/* Return what the y-axis spans, and the limits that are too far off to be drawn. `low` and `high`
   are values, `floor` and `ceiling` lie on the scale, with some air. */
function ends(chart, scale, low, high) {
  const reached = [], far = [];
  for (const [value, label] of chart.limits) {
    const fits = near(value, low, high) && Number.isFinite(scale.to(value));
    if (fits) reached.push(value);
    else far.push(label);
  }
  [low, high] = [Math.min(low, ...reached), Math.max(high, ...reached)];
  let [floor, ceiling] = [scale.to(low), scale.to(high)];
  const same = ceiling - floor <= SAME * Math.max(Math.abs(ceiling), Math.abs(floor));
  const air = same ? 0.5 * Math.abs(ceiling) || 0.5 : AIR * (ceiling - floor);
  // Where a share or a norm ends there is no more than a line's width beyond.
  const edge = 0.02 * (ceiling - floor + 2 * air);
  floor -= chart.low !== null && low === chart.low ? edge : air;
  ceiling += chart.high !== null && high === chart.high ? edge : air;
  return { low, high, floor, ceiling, far };
}
