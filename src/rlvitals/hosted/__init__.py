"""Runs that lie on a tracking server or behind a URL: fetched into a cache, then read as files."""
