"""Streams in columns: Arrow in, timed triples in columns out, without a Python object for each event.

The result is the *flat form*: record batches with a triple in each row (``flat_form``); for engines that read nothing
but records, a table whose rows are events stays one (``wide``).  Frames, Parquet, Arrow files, CSV and JSON are
converted by a mapping (``mapped_tables``), N-Quads by a byte scanner (``nquads``).  Input that is not of the usual
shape goes through the readers in the rest of ``streams``, so the events are the same, and so are the messages.  This
package may know what ``streams`` knows, Arrow, and ``values`` for the spelling of native values; Numba is used if it is
installed.
"""
