"""How many random examples a test draws: the profile of the run decides, a test only says its share."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

# The twenty tests of the engine against the oracle draw this many examples each: 3,000 and 54,000 in all.
DEFAULT, NIGHTLY = 150, 2_700

FEW = 12
"""Enough to notice what is plainly broken, in minutes."""

PROFILES = {"few": FEW, "default": DEFAULT, "nightly": NIGHTLY}
_loaded = "default"


def load_profile(name: str) -> None:
    """Let the tests that are imported from now on draw as many examples as this profile says."""
    global _loaded
    _loaded = name
    quiet = [HealthCheck.too_slow]
    # Hypothesis takes other seeds where an environment says that it is CI's, unless it is told not to.
    settings.register_profile(
        name,
        max_examples=PROFILES[name],
        deadline=None,
        print_blob=True,
        suppress_health_check=quiet,
        derandomize=False,
    )
    settings.load_profile(name)
    if name != "nightly":
        take_no_constants_of_modules()


def take_no_constants_of_modules() -> None:
    """Let a seed draw the same examples in every run.

    Hypothesis tries constants that stand in the modules which are loaded when it draws.  Which these are depends on the
    tests that a worker ran before.
    """
    none = Constants()
    providers._get_local_constants = lambda: none


def draws_many() -> bool:
    """Whether this is a nightly run, in which all combinations of some choices may be tried instead of some."""
    return settings().max_examples >= NIGHTLY


def is_quick() -> bool:
    """Whether this is a quick look, also inside a test that has settings of its own."""
    return _loaded == "few"


def seeds(count: int) -> range:
    """The seeds of what a test draws by itself, without Hypothesis; a quick look takes a sixth of them."""
    return range(max(1, count // 6) if is_quick() else count)


MANY, ONE_OF = 24, 3


def left_out(tests: Sequence[str]) -> set[str]:
    """Of each test with many cases, those that a quick look leaves out: it takes every third."""
    cases: dict[str, list[str]] = {}
    for test in tests:
        cases.setdefault(test.partition("[")[0], []).append(test)
    many = (of_test for of_test in cases.values() if len(of_test) > MANY)
    return {test for of_test in many for number, test in enumerate(of_test) if number % ONE_OF}


def length(count: int) -> int:
    """How many events a test draws by itself for a long stream; a quick look takes two fifths of them."""
    return count * 2 // 5 if is_quick() else count


def examples(share: float) -> int:
    """This share of the examples that the run draws for a test: a cheap test takes more than one, a dear one less."""
    return max(2, round(share * settings().max_examples))
