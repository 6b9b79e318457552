/* A chart as a file: a picture as it is drawn, or its points as a table. */

const HEAD_PIXELS = 24; // of a picture, above the chart

/* Make a menu that saves a chart. */
function exportMenu(chart) {
  const item = (text, act) => {
    const made = html("button", { type: "button", role: "menuitem" }, text);
    made.addEventListener("click", () => { menu.open = false; act(); });
    return made;
  };
  const menu = html("details", { class: "export" },
    html("summary", { "aria-label": `save ${chart.told.title}`, title: "save" }, "⋯"),
    html("div", { role: "menu" },
      item("PNG", () => savePicture(chart, true)),
      item("SVG", () => savePicture(chart, false)),
      item("CSV", () => chart.saveTable())));
  menu.addEventListener("focusout", (event) => { if (!menu.contains(event.relatedTarget)) menu.open = false; });
  return menu;
}

function save(name, address) {
  const link = html("a", { href: address, download: name });
  link.click();
}

function fileName(chart, ending) {
  return `${chart.told.title.replace(/[^\w.-]+/g, "_")}.${ending}`;
}

/* Save the points that the page has: of a long curve the extremes, which the file's name says. */
function saveDrawn(chart) {
  const several = chart.told.curves.length > 1;
  const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
  const rows = chart.told.curves.flatMap((one) => {
    const { steps, values } = chart.view.column(one.column);
    const digits = values instanceof Float32Array ? 8 : 17; // the others of a float32 are noise
    return Array.from(steps, (step, at) => `${several ? `${quoted(one.label)},` : ""}${step * chart.view.scale},${Number(values[at].toPrecision(digits))}`);
  });
  const heads = `${several ? "curve," : ""}${chart.view.scale === 1 ? "step" : chart.view.run.unit.replaceAll(" ", "_")},value`;
  const name = fileName(chart, chart.reduced() ? "as-drawn.csv" : "csv");
  save(name, URL.createObjectURL(new Blob([[heads, ...rows].join("\n")], { type: "text/csv" })));
}

const KEPT_STYLES = ["display", "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity",
  "font-size", "font-weight", "font-family", "text-anchor", "paint-order"];

/* Save a chart as it is drawn, with its styles written into it, and the names of its curves. */
function savePicture(chart, asPixels) {
  const { canvas, width, height } = chart;
  chart.view.point(null); // no curve is pointed at in the picture
  const copy = canvas.cloneNode(true);
  copy.querySelector(".pointer").replaceChildren();
  const styled = [...canvas.querySelectorAll(":not(.pointer *)")];
  [...copy.querySelectorAll("*")].forEach((made, at) => {
    const style = getComputedStyle(styled[at]);
    for (const name of KEPT_STYLES) made.setAttribute(name, style.getPropertyValue(name));
  });
  const names = drawnNames(chart);
  const tall = Math.max(height, ...names.map((one) => one.bottom)) + HEAD_PIXELS;
  for (const [name, value] of Object.entries({ viewBox: `0 ${-HEAD_PIXELS} ${width} ${tall}`, width, height: tall })) copy.setAttribute(name, value);
  const colours = getComputedStyle(document.documentElement);
  const title = svg("text", { x: 8, y: -8, "font-size": 13, "font-weight": 600, "font-family": "sans-serif",
    fill: colours.getPropertyValue("--ink") }, chart.told.title);
  copy.prepend(svg("rect", { x: 0, y: -HEAD_PIXELS, width, height: tall, fill: colours.getPropertyValue("--paper") }), title);
  copy.append(...names.map((one) => one.drawing));
  const address = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
  if (!asPixels) {
    save(fileName(chart, "svg"), address);
    return;
  }
  const picture = new Image();
  picture.addEventListener("load", () => {
    const page = html("canvas", { width: 2 * width, height: 2 * tall });
    page.getContext("2d").drawImage(picture, 0, 0, page.width, page.height);
    page.toBlob((blob) => save(fileName(chart, "png"), URL.createObjectURL(blob)));
  });
  picture.src = address;
}

/* Draw the names under a chart where the page has them. */
function drawnNames(chart) {
  const zero = chart.canvas.getBoundingClientRect();
  return [...chart.under.querySelectorAll(".key, .steps")].map((key) => {
    const box = key.getBoundingClientRect();
    const [x, y] = [box.left - zero.left, box.top - zero.top + 10];
    const mark = getComputedStyle(key, "::before");
    const text = svg("text", { x: key.matches(".key") ? x + 21 : x, y: y + 4, "font-size": 11, "font-family": "sans-serif", fill: getComputedStyle(key).color }, key.textContent);
    const line = svg("path", { d: `M${x} ${y}h16`, stroke: mark.borderTopColor, "stroke-width": 3,
      "stroke-dasharray": { dashed: "6 3", dotted: "2 3" }[mark.borderTopStyle] ?? "none" });
    return { drawing: svg("g", {}, ...(key.matches(".key") ? [line, text] : [text])), bottom: y + 10 };
  });
}
