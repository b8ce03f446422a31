"""The rule language: event-driven backward-chaining rules as immutable data, and their printing.

This package imports none of our other packages.  It holds what the compiler hands to the run time (terms, expressions,
rules), the background logic programs (``.lp``) and the shipped rule programs (``.rq``) with their small data.
"""
