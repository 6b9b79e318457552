/* What all pages do: the theme, the connection, the address, and the start of their own part. */

/* Listen to the server while the page is in sight: a browser opens six connections to a server,
   whatever its number of tabs. Who comes back is sent what was missed. */
function listen(address, position, handlers) {
  const lamp = document.getElementById("connection");
  const tell = (state, text) => { lamp.dataset.state = state; lamp.textContent = text; };
  let source = null;

  function open() {
    if (source || document.hidden) return;
    source = new EventSource(`${address}position=${position}`);
    source.addEventListener("open", () => tell("live", "live"));
    source.addEventListener("error", () => {
      tell("lost", "reconnecting");
      if (source?.readyState === EventSource.CLOSED) setTimeout(reopen, 3000);
    });
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => {
        position = event.lastEventId;
        handle(JSON.parse(event.data));
      });
    }
  }

  function reopen() {
    source?.close();
    source = null;
    open();
  }

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) open();
    else if (source) {
      source.close();
      source = null;
      tell("waiting", "paused");
    }
  });
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => { if (event.persisted) reopen(); });
  open();
}

/* Keep what is shown in the page's address: null takes a name away. */
function keepInAddress(values) {
  const address = new URL(location.href);
  for (const [name, value] of Object.entries(values)) {
    if (value === null) address.searchParams.delete(name);
    else address.searchParams.set(name, value);
  }
  history.replaceState(null, "", address);
}

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("rlvitals-theme", root.dataset.theme); } catch { /* storage is turned off */ }
});

const starts = { fleet: startFleet, run: startRun, compare: startCompare };
const start = starts[document.body.dataset.page];
if (start) start(JSON.parse(document.getElementById("data").textContent));
else document.getElementById("connection").hidden = true;
