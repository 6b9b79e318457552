"""Write reports on runs as a self-contained HTML page or as Markdown."""
