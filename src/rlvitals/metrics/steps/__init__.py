"""The step axis of a log: which column, on which clock, across restarts."""
