"""Runs that grow: read on from where the last look ended, and told in differences alone."""
