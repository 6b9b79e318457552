"""Read TensorBoard's event files with vectorised parsing; start with `stream`."""
