/* Elements, made without a word of markup: what a log wrote is text wherever it stands. */

const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function html(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/* Draw a line through points; a number that is none breaks it. */
function path(xs, ys) {
  const parts = [];
  let on = false;
  for (let at = 0; at < xs.length; at++) {
    if (!Number.isFinite(ys[at])) {
      on = false;
      continue;
    }
    parts.push(`${on ? "L" : "M"}${xs[at].toFixed(1)} ${ys[at].toFixed(1)}`);
    on = true;
  }
  return parts.join("");
}

/* Return the points that have a gap on either side: no line shows them. */
function lonely(ys) {
  const known = (at) => at >= 0 && at < ys.length && Number.isFinite(ys[at]);
  return ys.map((_, at) => at).filter((at) => known(at) && !known(at - 1) && !known(at + 1));
}
