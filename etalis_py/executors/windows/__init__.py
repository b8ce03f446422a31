"""RSP-QL and RSEP-QL at run time: streams to relations, relations to relations, relations to streams.

    event ──▶ windows (S2R) ──▶ SPARQL over a dataset of one time (R2R) ──▶ RSTREAM, ISTREAM, DSTREAM (R2S) ──▶ reports

It knows events, the algebra, the backward evaluator and the kernel's contract; nothing of files, Spark, or other
executors.  ``times`` has the definitions as pure functions; everything else maintains their results incrementally.
"""
