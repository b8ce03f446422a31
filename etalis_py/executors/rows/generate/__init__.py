"""Writes the functions of a rule network as Python source: pure, without state.

The result is a ``RowPlan``: the source, and the run-time objects that it needs (``runtime_objects``), which ``run``
provides.
"""
