"""Estimate memory and time of an update before any weight is downloaded."""
