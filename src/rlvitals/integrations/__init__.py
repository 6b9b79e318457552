"""Hooks into other people's trainers: each hands what the trainer knows to a recording."""
