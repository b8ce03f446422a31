"""For editors: what is wrong in a query while it is written, what a word means, what may stand next, and tidy text.

``features`` are functions of texts; ``server`` speaks the Language Server Protocol with them, for ``etalis lsp``.
This room knows the public names and the compiler.
"""
