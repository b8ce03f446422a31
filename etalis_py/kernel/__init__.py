"""What is the same for every executor, once: programs, the engine, the order of input, reports and snapshots.

It knows the compiler, the values, the background knowledge and the contract of an executor.
"""
