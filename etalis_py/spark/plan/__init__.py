"""Decides how a program is divided on Spark: parts, shards, slices, hot keys.  Values only; nothing runs here."""
