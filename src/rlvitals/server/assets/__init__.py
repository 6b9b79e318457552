"""Scripts, style and icon of the served pages."""
