/* Numbers as a person reads them, and ticks that are few, round and each another text. */

const UNITS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const LETTERS_FROM = 1e4; // smaller numbers are written in full
const SMALL = 1e-3, LARGE = 1e15; // beyond them with a power of ten

/* Write a value that somebody points at: four digits, thousands apart. */
function written(value) {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+∞" : "−∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return value.toLocaleString("en-US");
  const size = Math.abs(value);
  if (size >= LARGE || (size < SMALL && size > 0)) return powered(value, 3);
  if (size >= 1e4) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(4)));
}

function powered(value, digits) {
  const [mantissa, power] = value.toExponential(digits).split("e");
  return `${Number(mantissa)}e${Number(power)}`;
}

/* Write the ticks of an axis, with as few digits as tell them apart. */
function labels(ticks) {
  const largest = Math.max(...ticks.map(Math.abs), 0);
  if (largest === 0) return ticks.map(String);
  if (largest < SMALL || largest >= LARGE) return ticks.map((tick) => tick ? powered(tick, 2) : "0");
  let [unit, letter] = [1, ""];
  if (largest >= LETTERS_FROM) [unit, letter] = UNITS.find(([size]) => largest >= size) ?? [1, ""];
  const scaled = ticks.map((tick) => tick / unit);
  for (let digits = 0; digits < 9; digits++) {
    const texts = scaled.map((tick) => tick.toFixed(digits));
    if (scaled.every((tick, at) => Math.abs(tick - texts[at]) <= 1e-6 * Math.abs(tick))) {
      return texts.map((text, at) => ticks[at] ? text + letter : "0");
    }
  }
  return ticks.map((tick) => written(tick));
}

/* Write the ticks of an axis that spans decades: each by itself. */
function alone(tick) {
  if (tick === 0) return "0";
  const size = Math.abs(tick);
  if (size < SMALL || size >= LARGE) return powered(tick, 1);
  // 999,999 is written as 1M: three digits of it are 1,000k.
  const [unit, letter] = size < LETTERS_FROM ? [1, ""] : UNITS.find(([at]) => size >= 0.9995 * at);
  return `${Number((tick / unit).toPrecision(3))}${letter}`;
}

function step(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  const lead = rough / power;
  return power * [1, 2, 2.5, 5, 10].find((nice) => lead <= nice * (1 + 1e-9));
}

/* Return round numbers from `low` to `high`: about `most` of them, and two where that gives fewer. */
function linearTicks(low, high, most, whole = false) {
  for (let count = most; count <= 3 * most; count++) {
    const ticks = roundNumbers(low, high, count, whole);
    if (ticks.length > 1 || count === 3 * most) return ticks;
  }
}

function roundNumbers(low, high, most, whole) {
  let apart = step((high - low) / most);
  if (whole) apart = Math.max(1, Math.round(apart));
  if (!(apart > 0) || !Number.isFinite(apart)) return [];
  const ticks = [];
  for (let at = Math.ceil(low / apart - 1e-9); at * apart <= high + 1e-9 * apart; at++) {
    // Of 0.30000000000000004 the digits behind the step's own are noise.
    ticks.push(Number((at * apart).toPrecision(12)));
    if (ticks.length > 2 * most + 2) break;
  }
  return ticks;
}

/* Return powers of ten from `low` to `high`, and 2 and 5 between them where there is room. */
function decadeTicks(low, high, most) {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const every = Math.max(1, Math.ceil((last - first) / most));
  const isNarrow = Math.log10(high / low) < 2; // it may hold a single power of ten
  const leads = isNarrow || (last - first) * 3 <= most + 1 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let power = Math.ceil(first / every) * every; power <= last; power += every) {
    for (const lead of leads) {
      const tick = Number(`${lead}e${power}`);
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push(tick);
    }
  }
  return ticks;
}
