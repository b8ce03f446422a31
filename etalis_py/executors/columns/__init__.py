"""A batch at a time: rules evaluated over integer columns by a few compiled kernels.

Terms are numbers of a dictionary (``terms``), a batch is the occurrences of many instants (``occurrences``).  The
kernels (``kernels``) are general and compiled once per machine; whatever they cannot decide exactly is decided by
the functions of ``values`` on the rows that are left.  May know the rules, ``values``, ``sparql`` and the contract of
an executor in ``kernel``.
"""
