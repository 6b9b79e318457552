"""What lies in a folder: its files, which of them are one run, and what their settings are."""
