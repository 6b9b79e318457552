"""The state of a training program, written without pickle and put back into the same objects."""
