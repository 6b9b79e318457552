"""Save the state of a training program without pickle, and load it into the same objects."""
