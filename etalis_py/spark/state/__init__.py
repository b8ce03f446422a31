"""The state of a run on Spark: its layout in the state store, its folder, and the tools that describe and move it."""
