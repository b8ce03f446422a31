"""What must hold of the definitions whatever the program: laws on drawn programs, which also try the strategies."""

from __future__ import annotations

from collections import Counter

import pytest
from etalis_compiler.parser import parse
from hypothesis import HealthCheck, given, settings

from tests.draws import examples

from . import Asked, Endless, Evaluation, Refused, Undetermined, Unstratified, evaluation, printing
from . import strategies as s
from .compare import flat, same

QUICK = settings(max_examples=examples(2 / 15), suppress_health_check=list(HealthCheck))
UNCONSUMED = {name: drawn for name, drawn in s.ALL.items() if not name.startswith("policies")}


def judged(case: s.Case, **options: object) -> Evaluation | None:
    """The oracle's evaluation, or None where the program is refused."""
    given_options = {"background": case.background, "policy": case.policy, **options}
    try:
        return evaluation(case.program, given_options.pop("events", case.events), **given_options)  # type: ignore
    except (Unstratified, Refused, Endless, Undetermined):
        return None


@pytest.mark.parametrize("feature", s.ALL)
def test_a_drawn_program_reads_back_from_its_text(feature: str) -> None:
    @QUICK
    @given(s.ALL[feature]())
    def law(case: s.Case) -> None:
        assert parse(printing.program(case.program)) == case.program

    law()


@pytest.mark.parametrize("feature", s.ALL)
def test_timewise_monotonicity(feature: str) -> None:
    """[EP] §4.2: every solution for the stream up to t is a solution for the stream up to any later time.

    But for deadlines that are over after t: whether they are met, what comes later decides.
    """

    @QUICK
    @given(s.ALL[feature]())
    def law(case: s.Case) -> None:
        whole = judged(case)
        for cut in (2, 4):
            early = judged(case, events=[e for e in case.events if e.end <= cut * s.SECOND])
            if whole is None or early is None:
                return
            assert {o for o in early.closure if o[4] <= cut * s.SECOND} <= whole.closure
            for name, answer in early.answers.items():
                later = whole.answers[name]
                if isinstance(answer, Asked):
                    assert isinstance(later, Asked)
                    assert answer == later or answer.instant is None or answer.instant > cut * s.SECOND
                else:
                    timed = (row for row in flat(answer) if row[1] is not None and row[2] <= cut * s.SECOND)
                    assert Counter(timed) <= Counter(flat(later))

    law()


@pytest.mark.parametrize("feature", UNCONSUMED)
def test_placing_conjuncts_changes_nothing_unless_something_is_consumed(feature: str) -> None:
    """The plan that a consuming policy fixes is only a plan: without consumption its answers are the same."""

    @QUICK
    @given(UNCONSUMED[feature]())
    def law(case: s.Case) -> None:
        plain, planned = judged(case), judged(case, place_conjuncts=True)
        if plain is None or planned is None:
            return
        assert plain.closure == planned.closure
        for name, answer in plain.answers.items():
            assert same(answer, planned.answers[name])

    law()


def test_a_consuming_policy_gives_some_of_the_unrestricted_pairs() -> None:
    """Without an outer join, what is consumed only takes answers away."""

    @QUICK
    @given(s.policies())
    def law(case: s.Case) -> None:
        text = printing.program(case.program)
        if "OPTIONAL" in text or "LIMIT" in text:
            return
        consuming, free = judged(case), judged(case, policy="unrestricted")
        assert consuming is not None
        assert free is not None
        for name, answer in consuming.answers.items():
            if not isinstance(answer, Asked):
                assert not Counter(flat(answer)) - Counter(flat(free.answers[name]))

    law()


def test_the_order_of_simultaneous_events_does_not_matter() -> None:
    @QUICK
    @given(s.policies())
    def law(case: s.Case) -> None:
        turned = sorted(case.events, key=lambda e: (e.end, [-ord(c) for c in repr(e)]))
        first, second = judged(case), judged(case, events=turned)
        assert first is not None
        assert second is not None
        assert first.answers == second.answers

    law()
