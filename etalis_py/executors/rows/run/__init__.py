"""Runs the generated functions: goals, aggregates, paths, runs and deadlines, and their state.

It may know what ``generate`` writes, the kernel's contract of an executor, and the backward evaluator.
"""
