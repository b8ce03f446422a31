"""One shard at work in a Python worker: an engine that takes the events of a batch and keeps its state."""
