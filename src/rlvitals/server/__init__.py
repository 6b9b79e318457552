"""Serve runs to a browser: a fleet of runs, a page for each, and comparisons."""
