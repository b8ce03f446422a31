"""Executors run plans: an executor takes events in order and reports solutions.

Each folder is one executor behind the contract of ``etalis_py.kernel.protocol``; none knows the order of input,
lateness, the clock or how matches are reported, and nothing outside this room depends on which of them runs.

Grouping is implemented in four places, all on top of the accumulators of ``values.functions``, the only definition of
an aggregate.  They differ in their input and in when they answer:

* ``sparql.selects``: all solutions at once, one answer.  Sub-SELECTs over the background, and any SELECT over the whole
  content of a window.
* ``rows.grouping``: solutions one after another; at each instant, the rows that changed.  Every feature of a grouped
  query over events: HAVING, ORDER BY, DISTINCT, LIMIT, sliding windows, explanations.
* ``rows.incremental_sums``: the same for COUNT, SUM and AVG alone, as generated code; ``rows.grouping`` without the
  features.
* ``windows.groups``: triples that enter and leave the content of a window; the whole result on request.
  Groups over one triple pattern in a window that slides; HAVING and what follows it are those of ``sparql.selects``.
"""
