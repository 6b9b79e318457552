"""Find the runs in a folder: their files and their settings."""
