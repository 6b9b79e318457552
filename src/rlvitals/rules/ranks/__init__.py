"""Rules about the ranks of a run: processes that train one policy together."""
