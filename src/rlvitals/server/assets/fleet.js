/* The page of all runs: a line for each, kept current. */

const SPARK = { width: 132, height: 30, pad: 3 };
const REFRESH_MS = 1200; // between two fetches of the order of the lines

function startFleet(data) {
  const list = document.getElementById("runs");
  const search = document.getElementById("search");
  const sort = document.getElementById("sort");
  const more = document.getElementById("more");
  const compare = document.getElementById("compare");
  const group = document.getElementById("group");
  const problem = document.getElementById("problem");
  const heads = document.querySelectorAll(".heads > span");
  const lampButtons = [...document.querySelectorAll("[data-lamp]")];
  const selected = new Set();
  const lines = new Map();
  let [differing, lamp, total, limit] = [data.differing, "", data.total, data.page_rows];
  let [waiting, asked, grouped, offset, hidden] = [null, 0, false, 0, 0];

  function put(row) {
    const line = fleetLine(row, differing, data.labels, selected);
    lines.get(row.key)?.element.replaceWith(line);
    lines.set(row.key, { row, element: line });
    return line;
  }

  function show(told) {
    const focus = document.activeElement?.closest?.(".line")?.dataset.key;
    [differing, total] = [told.differing, told.total];
    lines.clear();
    list.replaceChildren(...told.rows.map(put));
    hidden = total - offset - told.rows.length; // below the last line
    more.hidden = hidden <= 0 && !offset;
    more.textContent = hidden <= 0 ? "Back to the first runs" : limit < data.max_rows ? `Show more: ${hidden} of ${total} are hidden` : `Next ${Math.min(hidden, limit)} of ${total}`;
    if (!told.rows.length) list.append(html("p", { class: "empty" }, emptyText(search.value, lamp)));
    if (focus) lines.get(focus)?.element.querySelector("a").focus({ preventScroll: true });
    count(told.lamps);
    tellSpent(told.trained);
    document.documentElement.dataset.ready = "yes";
  }

  function count(lamps) {
    for (const button of lampButtons) {
      button.querySelector("b").textContent = lamps[button.dataset.lamp];
      button.classList.toggle("none", !lamps[button.dataset.lamp]);
    }
  }

  async function fetchRows() {
    waiting = null;
    const number = ++asked;
    const query = new URLSearchParams({ search: search.value, sort: sort.value, lamp, limit, offset });
    const answer = await fetch(`/api/${grouped ? "groups" : "runs"}?${query}`).catch(() => null);
    if (!answer || number !== asked) return;
    const told = await answer.json();
    problem.hidden = answer.ok;
    problem.textContent = answer.ok ? "" : `${told.problem}. ${told.hint ?? ""}`;
    if (!answer.ok) return;
    nameColumns(grouped);
    if (!grouped) return show(told);
    lines.clear();
    more.hidden = true;
    list.replaceChildren(...told.groups.map((group) => groupLine(group, data.labels)));
    if (told.total > told.groups.length) list.append(html("p", { class: "empty" }, `${told.groups.length} of ${told.total} groups are shown: filter for the others.`));
  }

  function nameColumns(groups) {
    [heads[2].textContent, heads[5].textContent] = groups ? ["group", "runs"] : ["run", "steps"];
  }

  function switchGroups(on) {
    grouped = on;
    group.setAttribute("aria-pressed", String(on));
    [sort.disabled, compare.hidden] = [on, on]; // groups have an order and a link of their own
    changed();
  }

  const soon = (ms) => { waiting ??= setTimeout(fetchRows, ms); };
  const changed = () => {
    keepInAddress({ search: search.value || null, lamp: lamp || null, sort: sort.value === "worst" ? null : sort.value, group: grouped ? "seeds" : null });
    clearTimeout(waiting);
    offset = 0;
    waiting = setTimeout(fetchRows, 150);
  };

  /* Add lines up to as many as one answer holds, then turn to the next ones. */
  function showMore() {
    if (hidden > 0 && limit < data.max_rows) limit = Math.min(limit + data.page_rows, data.max_rows);
    else {
      offset = hidden > 0 ? offset + limit : 0;
      scrollTo({ top: 0, behavior: "instant" });
    }
    fetchRows();
  }

  function choose(name) {
    lamp = lamp === name ? "" : name;
    for (const button of lampButtons) button.setAttribute("aria-pressed", String(button.dataset.lamp === lamp));
    changed();
  }

  function select(key, on) {
    if (on) selected.add(key);
    else selected.delete(key);
    const ready = selected.size > 1;
    compare.setAttribute("aria-disabled", String(!ready));
    compare.textContent = selected.size ? `Compare ${selected.size}` : "Compare";
    compare.href = `/compare?${[...selected].map((one) => `key=${encodeURIComponent(one)}`).join("&")}`;
  }

  const wanted = new URLSearchParams(location.search);
  search.value = wanted.get("search") ?? "";
  sort.value = ["newest", "name"].includes(wanted.get("sort")) ? wanted.get("sort") : "worst";
  show(data);
  if (data.lamps[wanted.get("lamp")] !== undefined) choose(wanted.get("lamp"));
  else if (search.value || sort.value !== "worst") changed();

  if (wanted.get("group") === "seeds") switchGroups(true);
  group.addEventListener("click", () => switchGroups(!grouped));
  search.addEventListener("input", changed);
  sort.addEventListener("change", changed);
  document.getElementById("tools").addEventListener("submit", (event) => event.preventDefault());
  for (const button of lampButtons) button.addEventListener("click", () => choose(button.dataset.lamp));
  more.addEventListener("click", showMore);
  list.addEventListener("change", (event) => select(event.target.value, event.target.checked));
  compare.addEventListener("click", (event) => { if (selected.size < 2) event.preventDefault(); });
  document.addEventListener("keydown", (event) => fleetKey(event, list, search));

  listen("/api/events?", data.position, {
    row: ({ row, lamps }) => {
      count(lamps);
      const old = lines.get(row.key)?.row;
      if (old) put(row);
      if (grouped || !old || old.lamp !== row.lamp) soon(REFRESH_MS);
    },
    removed: ({ lamps }) => { count(lamps); soon(200); },
    differing: ({ names }) => { differing = names; for (const { row } of [...lines.values()]) put(row); },
    reload: () => soon(0),
  });
  setInterval(() => { if (!document.hidden) for (const { row, element } of lines.values()) tellAge(element, row); }, 5000);
}

/* Say how much of the training time broken runs took, from a minute on. */
function tellSpent({ bad, all }) {
  const place = document.getElementById("spent");
  place.hidden = bad < 60;
  place.textContent = `Broken runs took ${lasting(bad)} of ${lasting(all)} of training (${Math.round((100 * bad) / all)}\u00a0%).`;
}

function emptyText(words, lamp) {
  return words || lamp ? "No run fits." : "No run yet. A run that is written below this folder appears here by itself.";
}

/* Make the line of a run. */
function fleetLine(row, differing, labels, selected) {
  const shown = row.key === "." ? row.name : row.key; // the served folder itself may be a run
  const box = html("input", { type: "checkbox", value: row.key, "aria-label": `select ${shown} to compare` });
  box.checked = selected.has(row.key);
  const slash = shown.lastIndexOf("/") + 1;
  const name = html("a", { class: "name", href: `/run/${row.key.split("/").map(encodeURIComponent).join("/")}`, title: shown },
    html("span", { class: "folder" }, ...breakable(shown.slice(0, slash))), ...breakable(shown.slice(slash)));
  const settings = differing.filter((key) => row.settings[key] !== undefined).map((key) =>
    html("span", { class: "setting", title: key }, html("span", {}, `${key.split("/").at(-1)} `), row.settings[key]));
  const tags = row.tags.map((tag) => html("span", { class: "tag-name" }, tag));
  // The onset is of the finding; without one the run failed there.
  const since = row.onset === null ? "" : `${row.rule ? "since" : "at"} ${written(row.onset)}`;
  const line = html("div", { class: `line is-${row.lamp}`, role: "listitem" },
    html("label", { class: "pick" }, box),
    html("span", { class: `lamp ${row.lamp}`, role: "img", "aria-label": labels[row.lamp] }),
    html("div", { class: "who" }, name, html("div", { class: "settings" }, ...settings, ...tags,
      ...(row.job ? [html("span", { class: "setting job", title: row.job }, row.job)] : []))),
    html("div", { class: "what" },
      html("div", { class: "said" }, html("b", { class: `word ${row.lamp}` }, row.verdict),
        ...(row.is_provisional ? [html("span", { class: "since" }, "provisional")] : []),
        ...(row.rule ? [html("code", {}, row.rule)] : []), html("span", { class: "since" }, since)),
      html("div", { class: "reason", title: row.reason }, row.reason)),
    html("div", { class: "outcome" }, sparkline(row),
      html("div", {}, html("b", {}, row.value), html("span", {}, row.outcome))),
    html("div", { class: "far" }, progressOf(row), html("span", { class: "age" })));
  line.dataset.key = row.key;
  tellAge(line, row);
  return line;
}

/* Return a name as pieces between which a line may break. */
function breakable(name) {
  return name.split(/(?<=[/_.-])(?=[^/_.-])/).flatMap((piece) => [piece, html("wbr")]);
}

function progressOf(row) {
  const isRead = row.state !== "" && row.verdict !== "unreadable";
  if (row.step === null) return html("span", { class: "steps" }, isRead ? "no row yet" : "");
  const made = html("span", { class: "steps" }, html("b", {}, short(row.step)));
  if (row.total) {
    const share = Math.min(100, Math.round((100 * row.step) / row.total));
    made.append(` of ${short(row.total)}`);
    const bar = html("span", { class: "progress", role: "progressbar", "aria-valuenow": share, "aria-valuemin": 0, "aria-valuemax": 100, "aria-label": "steps done" },
      html("span", {}));
    bar.firstChild.style.width = `${share}%`;
    made.append(bar);
  }
  return made;
}

function short(step) {
  return Math.abs(step) < LETTERS_FROM ? written(step) : alone(step);
}

/* Say how a run lives, and how long ago it logged. */
function tellAge(line, row) {
  const place = line.querySelector(".age");
  const seconds = row.time === null ? null : Math.max(0, Date.now() / 1000 - row.time);
  const ago = seconds === null ? "" : seconds < 10 ? (row.state === "running" ? "" : "just now") : `${lasting(seconds)} ago`;
  const eta = row.eta === null || row.state !== "running" ? "" : `${lasting(row.eta)} left`;
  place.textContent = [row.state === "unknown" ? "" : row.state, eta, ago].filter(Boolean).join(" · ");
  place.classList.toggle("alive", row.state === "running");
}

function lasting(seconds) {
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([one]) => seconds >= 2 * one) ?? [1, "s"];
  return `${Math.round(seconds / size)} ${unit}`;
}

/* Return where the points of a sparkline stand, from left to right. */
function sparkPlaces(count) {
  return Array.from({ length: count }, (_, at) => SPARK.pad + (at / Math.max(1, count - 1)) * (SPARK.width - 2 * SPARK.pad));
}

function sparkline(row) {
  const { width, height, pad } = SPARK;
  const picture = svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const xs = sparkPlaces(row.spark.length);
  const ys = row.spark.map((value) => value === null ? NaN : height - pad - (value / 100) * (height - 2 * pad));
  picture.append(svg("path", { class: "spark-line", d: path(xs, ys) }));
  const end = ys.findLastIndex(Number.isFinite);
  if (end >= 0) picture.append(svg("circle", { class: "spark-end", cx: xs[end], cy: ys[end], r: 2.4 }));
  return picture;
}

/* j and k move, x selects, / filters. */
function fleetKey(event, list, search) {
  const typing = event.target.matches?.("input[type=search], select");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && typing) event.target.blur();
  if (typing) return;
  const links = [...list.querySelectorAll(".name")];
  const at = links.findIndex((link) => link.closest(".line").contains(document.activeElement));
  const moves = {
    "/": () => search.focus(),
    j: () => links[Math.min(at + 1, links.length - 1)]?.focus(),
    k: () => links[Math.max(at - 1, 0)]?.focus(),
    x: () => links[at]?.closest(".line").querySelector("input")?.click(),
  };
  if (!moves[event.key]) return;
  event.preventDefault();
  moves[event.key]();
}
