"""Rules about speed: whether time is being wasted."""
