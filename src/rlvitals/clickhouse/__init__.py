"""Keep the index of many runs in ClickHouse: a server's database, or chdb's folder."""
