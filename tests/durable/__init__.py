"""Runs that go on after their process has ended, and the connectors that take part."""
