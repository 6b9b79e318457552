"""From a log to a diagnosis: load, judge, order the causes, say what to do."""
