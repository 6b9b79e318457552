"""Runs x seeds -> intervals and a verdict; two runs -> what differs and since when."""
