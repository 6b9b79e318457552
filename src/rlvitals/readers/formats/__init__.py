"""What several readers read with: text, tables, records and databases, damaged or growing."""
