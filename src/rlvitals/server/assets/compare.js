/* The page of a comparison: charts of all runs, by steps, time or samples. */

class CompareView extends LiveView {
  get source() {
    return this.data.source;
  }
}

/* A chart of all runs: who clicks where a finding of a run began is led to it. */
class CompareChart extends LiveChart {
  follow(event) {
    if (!event.target.matches(".pin")) return;
    const [, curve, rule] = this.told.onsets[[...this.canvas.querySelectorAll(".pin")].indexOf(event.target)];
    location.href = `/run/${this.told.curves[curve].label.split("/").map(encodeURIComponent).join("/")}?finding=${encodeURIComponent(rule)}`;
  }
}

function startCompare(data) {
  const view = new CompareView(data);
  const charts = new Map();
  for (const place of document.querySelectorAll("[data-chart]")) {
    charts.set(place, new CompareChart(place, place.dataset.chart, view));
  }
  const drawn = data.drawn.charts[0];
  [...charts.values()].find((chart) => chart.name === drawn.name)?.load(drawn, data.drawn.columns);
  watchCharts(charts);
  const choice = document.getElementById("smoothing");
  const smooth = () => view.setAverage(choice.value);
  choice.value = new URLSearchParams(location.search).get("average") ?? "";
  if (choice.value) smooth();
  choice.addEventListener("change", () => {
    smooth();
    keepInAddress({ average: choice.value || null });
  });
  const metrics = document.getElementById("metrics");
  if (metrics) searchMetrics(metrics);
  emphasizeByName([...document.querySelectorAll(".names .key")], view.charts);
  printing(() => charts);
  document.getElementById("connection").hidden = true;
  document.documentElement.dataset.ready = "yes";
}
