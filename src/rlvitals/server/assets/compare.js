/* The page of a comparison: its chart of all runs. */

function startCompare(data) {
  const column = unpacker(data.columns);
  const view = new View(data, column);
  const charts = new Map();
  for (const told of data.charts) {
    const place = document.querySelector(`[data-chart="${told.name}"]`);
    if (place) charts.set(place, new Overlay(place, told, view));
  }
  watchCharts(charts);
  printing(() => charts);
  document.getElementById("connection").hidden = true;
  document.documentElement.dataset.ready = "yes";
}
