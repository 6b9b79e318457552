"""Charts in a browser: what they are made of, and the script and style that draw them."""

# In the order in which they are put together: each may use what stands before it.
SCRIPTS: tuple[str, ...] = (
    "numbers.js",
    "columns.js",
    "scales.js",
    "svg.js",
    "marks.js",
    "chart.js",
    "moves.js",
)
STYLE = "charts.css"
