"""Everything that all executors share: programs, the engine, the order of input, reports and snapshots.

It knows the compiler, the values, the background knowledge and the contract of an executor.
"""
