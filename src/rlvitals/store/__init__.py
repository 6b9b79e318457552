"""Where runs live: the run folder, its column blocks, its events, and views over them."""
