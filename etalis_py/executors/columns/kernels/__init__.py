"""Loops over arrays, compiled by Numba: terms, joins, aggregates, order.

A kernel knows numbers only: no rule, no term's spelling but as bytes.  All take the same few types of arrays, so that
each is compiled once.
"""
