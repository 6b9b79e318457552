"""Recording of runs: `rlvitals.start()`, the Run it returns, and the sinks."""
