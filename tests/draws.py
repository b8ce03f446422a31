"""How many random examples a test draws: the profile of the run decides, a test only says its share."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# The twenty tests of the engine against the oracle draw this many examples each: 3,000 and 54,000 in all.
DEFAULT, NIGHTLY = 150, 2_700

FEW = 12
"""Enough to notice what is plainly broken, in minutes."""

PROFILES = {"few": FEW, "default": DEFAULT, "nightly": NIGHTLY}


def load_profile(name: str) -> None:
    """Let the tests that are imported from now on draw as many examples as this profile says."""
    quiet = [HealthCheck.too_slow]
    settings.register_profile(
        name, max_examples=PROFILES[name], deadline=None, print_blob=True, suppress_health_check=quiet
    )
    settings.load_profile(name)


def draws_many() -> bool:
    """Whether this is a nightly run, in which all combinations of some choices may be tried instead of some."""
    return settings().max_examples >= NIGHTLY


def examples(share: float) -> int:
    """This share of the examples that the run draws for a test: a cheap test takes more than one, a dear one less."""
    return max(2, round(share * settings().max_examples))
