"""Streams in columns: Arrow in, timed triples in columns out, without a Python object for each event.

What comes out is the *flat form*: record batches with a triple in each row (``flat``).  Frames, Parquet, Arrow files,
CSV and JSON get there by a mapping (``mapped``), N-Quads by a scanner of bytes (``nquads``).  A part of the input that
is not of the usual shape goes through the readers of the rest of ``streams``, so the events are the same, and so are
the messages.  This room may know what ``streams`` knows, Arrow, and ``values`` for the spelling of native values; Numba
is used where it is installed.
"""
