"""The interval of solutions in which no occurrence takes part.

A *timeless* solution (one found in the background knowledge alone) has the empty interval [+∞, −∞]: it is neutral for
min and max, so the hull of a timeless solution and another one is the other's interval, and two timeless ones stay
timeless.  Both are ends of int64, so they fit wherever a time does.

>>> min(TIMELESS_START, 5), max(TIMELESS_END, 7)
(5, 7)
"""

from __future__ import annotations

TIMELESS_START = 2**63 - 1
TIMELESS_END = -(2**63)
