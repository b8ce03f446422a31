"""The command line ``etalis``.

One module for each command (``run``, ``explain``, ``replay``, ``serve``, ``repl``, …), each with ``add`` for its
options and a function that runs it; ``main`` turns errors into a message and an exit code.  ``paced_steps`` moves
events through an engine, ``progress`` shows how it goes, ``picture`` draws the matches.  This package may import every
other one; none imports it.
"""
