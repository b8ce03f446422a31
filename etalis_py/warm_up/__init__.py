"""Compiles the loops of columns ahead of time (``python -m etalis_py.warm_up``), by small programs that use them all."""
