"""Queries as other benchmarks and other trades ask them, each with a plain program that has the same answers."""

from benchmarks.scenarios import nexmark, trades

SCENARIOS = (*nexmark.SCENARIOS, *trades.SCENARIOS)
