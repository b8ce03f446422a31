"""How many random examples a test draws: the profile of the run decides, a test only says its share."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# The twenty tests of the engine against the oracle draw this many examples each: 3,000 and 54,000 in all.
DEFAULT, NIGHTLY = 150, 2_700


FEW = 12
"""Enough to notice what is plainly broken, in minutes."""

_COMMON = {"deadline": None, "print_blob": True, "suppress_health_check": [HealthCheck.too_slow]}
for _name, _examples in (("few", FEW), ("default", DEFAULT), ("nightly", NIGHTLY)):
    settings.register_profile(_name, max_examples=_examples, **_COMMON)  # type: ignore[arg-type]


def examples(share: float) -> int:
    """This share of the examples that the run draws for a test: a cheap test takes more than one, a dear one less."""
    return max(2, round(share * settings().max_examples))
