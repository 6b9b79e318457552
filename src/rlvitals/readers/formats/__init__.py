"""Parsers of file formats: text, tables, records and databases, damaged or growing."""
