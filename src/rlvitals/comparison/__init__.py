"""Compare groups of runs over seeds, and diff two runs."""
