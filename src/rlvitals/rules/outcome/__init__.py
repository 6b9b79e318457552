"""Rules about what the run is for: return, success, reward."""
