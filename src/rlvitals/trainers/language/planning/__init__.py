"""Memory and time of an update, estimated before any weight is downloaded."""
