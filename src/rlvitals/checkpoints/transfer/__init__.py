"""Back up, restore, bundle and unbundle runs."""
