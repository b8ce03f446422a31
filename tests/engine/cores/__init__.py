"""Runs on several cores."""
