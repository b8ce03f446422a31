"""A batch at a time: rules evaluated over integer columns by a few compiled kernels.

Terms are numbers in a dictionary (``terms``); a batch holds the occurrences of many instants (``occurrences``).  The
kernels (``kernels``) are general and compiled once per machine; the functions of ``values`` decide the rows that the
kernels cannot decide exactly.  May know the rules, ``values``, ``sparql`` and the contract of an executor in
``kernel``.
"""
