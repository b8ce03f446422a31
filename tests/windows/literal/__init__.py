"""The definitions of [RSPQL] and [RSEP] as they are printed, over a whole finite stream of whole seconds.

Slow and obvious: every time is tried, every window is listed, every combination of triples is looked at.  Nothing here
uses the windows, the algebra or the evaluators of the product, only the parser and its syntax tree.
"""
