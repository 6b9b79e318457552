"""One self-contained page, or one text, that tells all about some runs."""
