"""Rewrites: one file per rewrite, each a pure function from algebra to algebra (or from rules to rules).

A rewrite never changes the answers.  Under a consuming policy the place of a filter decides which candidates are
consumed, so there the result of ``push_filters`` and ``push_windows`` is part of the meaning.
"""
