"""Our own runs, written: `rlvitals.start()` and what it hands rows to."""
