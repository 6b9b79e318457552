"""A short command starts fast: cheap record classes, modules and patterns loaded on use."""
