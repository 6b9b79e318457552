"""Browser charts: packed data, script and style."""

# In order of concatenation: each script may use those before it.
CHART_SCRIPTS: tuple[str, ...] = (
    "numbers.js",
    "columns.js",
    "scales.js",
    "svg.js",
    "marks.js",
    "overlay.js",
    "export.js",
    "chart.js",
    "moves.js",
)
CHART_STYLE = "charts.css"
