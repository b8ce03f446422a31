"""What leaves the shards: matches, dead letters and metrics as rows, and the sinks that take them."""
