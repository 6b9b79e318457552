"""Modules that `rlvitals run --instead` serves under the names of other libraries."""
