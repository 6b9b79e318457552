"""Write pictures to files; only this package imports matplotlib."""
