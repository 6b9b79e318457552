"""Record the calls that a program makes to other trackers, without a change to the program.

`rlvitals run` starts the program with `site/` on PYTHONPATH. Its `sitecustomize` installs the
import hook of `imports`; the functions of `trackers` follow a library once it is imported, and
`run_folders` decides which run folder a call belongs to.
"""
