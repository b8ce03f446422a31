"""One event at a time, in generated Python: every feature of the language, at the lowest latency.

It knows the rules, the values and the backward evaluator; nothing of streams, Spark or the command line.
"""
