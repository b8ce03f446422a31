"""How events reach the shards: sources and columns as events, tests and routing in the JVM or in Arrow, updates."""
