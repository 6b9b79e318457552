/* The lines of the fleet grouped by all settings but the seed. */

const MOST_COMPARED = 24; // runs of one comparison

function groupLine(group, labels) {
  const lamps = Object.entries(group.lamps).filter(([, count]) => count);
  const worst = lamps[0][0];
  const words = lamps.flatMap(([name, count], at) => [at ? ", " : "", html("b", { class: `word ${name}` }, `${count} ${labels[name]}`)]);
  const [head, ...settings] = group.label.split(" · ");
  const several = group.keys.length > 1;
  const keys = group.keys.slice(0, MOST_COMPARED).map((key) => `key=${encodeURIComponent(key)}`).join("&");
  const address = several ? `/compare?${keys}` : `/run/${group.keys[0].split("/").map(encodeURIComponent).join("/")}`;
  const ends = several && group.low !== null ? [...new Set([written(group.low), written(group.high)])] : [];
  return html("div", { class: `line group is-${worst}`, role: "listitem" },
    html("span", { class: "pick" }), // where other lines have their box
    html("span", { class: `lamp ${worst}`, role: "img", "aria-label": labels[worst] }),
    html("div", { class: "who" }, html("a", { class: "name", href: address }, head),
      html("div", { class: "settings" }, ...settings.map((text) => html("span", { class: "setting" }, text)))),
    html("div", { class: "what" }, html("div", {}, ...words),
      html("div", { class: "reason" }, ends.length ? `${group.outcome}: ${ends.join(" to ")}` : "")),
    html("div", { class: "outcome" }, groupCurve(group), html("div", {}, html("b", {}, group.middle === null ? "" : written(group.middle)),
      html("span", several ? { title: "interquartile mean; the band reaches from the lowest to the highest run" } : {},
        `${group.outcome}${several ? ", IQM" : ""}`))),
    html("div", { class: "far" }, `${group.keys.length} ${several ? "runs" : "run"}`));
}

/* Draw the interquartile mean of the runs, and behind it the band from the lowest to the highest. */
function groupCurve(group) {
  const picture = sparkline(group);
  const { height, pad } = SPARK;
  const x = sparkPlaces(group.spark.length);
  const y = (value) => height - pad - (value / 100) * (height - 2 * pad);
  const places = x.map((_, at) => at).filter((at) => group.spark_low[at] !== null && group.spark_low[at] !== undefined);
  const there = places.map((at) => `${x[at].toFixed(1)} ${y(group.spark_high[at]).toFixed(1)}`);
  const back = places.map((at) => `${x[at].toFixed(1)} ${y(group.spark_low[at]).toFixed(1)}`).reverse();
  if (group.keys.length > 1 && there.length) picture.prepend(svg("path", { class: "spark-band", d: `M${[...there, ...back].join("L")}Z` }));
  return picture;
}
