"""Language models: the reference, groups and filters, lengths and endings."""
