"""Saved rollouts of language-model training: samples, their index, series, pairs, backtests."""
