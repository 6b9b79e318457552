"""TensorBoard's event files at memory speed: see `stream` for how a file is read."""
