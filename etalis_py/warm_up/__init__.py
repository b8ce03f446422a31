"""Compiles the loops of columns ahead of time: small programs that use them all (``python -m etalis_py.warm_up``)."""
