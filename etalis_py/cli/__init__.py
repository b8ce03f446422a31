"""The command line ``etalis``.

One module for each command (``run``, ``explain``, ``replay``, ``serve``, ``repl``), each with ``add`` for its options
and a function that does it; ``main`` turns what goes wrong into a message and an exit code.  ``drive`` moves events
through an engine, ``progress`` tells how it goes, ``timeline`` draws what was found.  This room may know every other
one; none knows it.
"""
