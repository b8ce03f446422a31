"""Other engines on the same events: Esper, Siddhi, Flink CEP, DuckDB, Polars, and this one by rows and by columns."""
