"""Numbers to facts: pure numpy on one-dimensional arrays. Knows no metric, file or clock."""
