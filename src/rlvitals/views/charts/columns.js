/* Columns of numbers: unpacked once, and reduced to what some columns of pixels show. */

function bytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
}

function unpackSteps(told) {
  if (told.n !== undefined) return Float64Array.from({ length: told.n }, (_, at) => told.at + at * told.by);
  const kinds = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: Float64Array };
  const apart = new kinds[told.w](bytes(told.b));
  const steps = new Float64Array(apart.length + 1);
  steps[0] = told.at;
  for (let at = 0; at < apart.length; at++) steps[at + 1] = steps[at] + apart[at];
  return steps;
}

function unpackValues(told) {
  return new (told.f === 8 ? Float64Array : Float32Array)(bytes(told.b));
}

/* Make what gives column number `at`; each is unpacked when it is first drawn. */
function unpacker(columns) {
  const done = new Map();
  return (at) => {
    if (!done.has(at)) {
      const told = columns[at];
      done.set(at, { steps: unpackSteps(told.steps), values: unpackValues(told.values) });
    }
    return done.get(at);
  };
}

/* Return the place of the first step that is `step` or beyond. */
function place(steps, step) {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] < step) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Return the places [begin, end) that a stretch of steps shows, and a neighbour on either side. */
function within(steps, first, last) {
  let end = place(steps, last);
  while (end < steps.length && steps[end] === last) end++;
  return [Math.max(0, place(steps, first) - 1), Math.min(steps.length, end + 1)];
}

/* Return the place of the point from `first` to `last` that is nearest to a step; -1 without one. */
function nearest(steps, step, first = -Infinity, last = Infinity) {
  const [begin, end] = [place(steps, first), within(steps, first, last)[1]];
  let after = Math.max(begin, Math.min(place(steps, step), end - 1));
  while (after > begin && steps[after] > last) after--;
  if (!(steps[after] >= first && steps[after] <= last)) return -1;
  const before = Math.max(after - 1, begin);
  return step - steps[before] < steps[after] - step ? before : after;
}

/* Pick the first, last, lowest and highest point of each column of pixels: Jugel et al., "M4",
   VLDB 2014. Every number that is none is kept. */
function extremes(column, begin, end, first, last, width) {
  const { steps, values } = column;
  if (end - begin <= 4 * width) return Array.from({ length: end - begin }, (_, at) => begin + at);
  const kept = [];
  let at = begin;
  while (at < end) {
    const pixel = pixelOf(steps[at], first, last, width);
    const [head, tops] = [at, []];
    let [low, high] = [-1, -1];
    for (; at < end && pixelOf(steps[at], first, last, width) === pixel; at++) {
      const value = values[at];
      if (!Number.isFinite(value)) tops.push(at);
      else {
        if (low < 0 || value < values[low]) low = at;
        if (high < 0 || value > values[high]) high = at;
      }
    }
    const found = new Set([head, low, high, at - 1, ...tops]);
    kept.push(...[...found].filter((one) => one >= 0).sort((a, b) => a - b));
  }
  return kept;
}

function pixelOf(step, first, last, width) {
  return Math.floor(((step - first) / (last - first || 1)) * width);
}

/* Return the lowest and the highest finite value of some places. */
function range(values, begin, end) {
  let [low, high] = [Infinity, -Infinity];
  for (let at = begin; at < end; at++) {
    const value = values[at];
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}
