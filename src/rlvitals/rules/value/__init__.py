"""Rules that judge the critic: its loss, its error, its scale."""
