"""Modules with a function `follow(module)`, which records the calls of one library each."""
