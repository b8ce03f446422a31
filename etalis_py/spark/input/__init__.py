"""Brings events and updates to the shards: reads sources and columns, and filters and routes in the JVM or in Arrow."""
