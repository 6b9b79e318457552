"""Follow growing runs: read new rows, judge, and report the changes."""
