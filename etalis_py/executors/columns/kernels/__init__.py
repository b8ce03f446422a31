"""Loops over arrays, compiled by Numba: terms, joins, aggregates, order.

A kernel knows only numbers: no rules, and the spellings of terms only as bytes.  All take the same few types of arrays,
so that each is compiled once.
"""
