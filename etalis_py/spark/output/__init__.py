"""Turns the matches, dead letters and metrics of the shards into rows, and hands these to sinks."""
