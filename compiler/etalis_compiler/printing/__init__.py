"""The pieces of ``to_text``: terms and expressions, patterns, queries."""
