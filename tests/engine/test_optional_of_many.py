"""OPTIONAL and EXISTS with a comparison, among very many goals: the answers of the definition, without all of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

import pytest

from etalis_py import Engine, Event, compile
from tests.draws import seeds
from tests.engine.test_first_that_fits import COMPARE, KINDS, comparing, double, integer
from tests.work import growth, lines_of

SECOND = 1_000_000
FORMS = {
    "OPTIONAL": "SELECT ?x ?y { ?k :a ?x OPTIONAL { ?k :b ?y FILTER (%s) } }",
    "EXISTS": "SELECT ?x { ?k :a ?x FILTER EXISTS { ?k :b ?y FILTER (%s) } }",
    "NOT EXISTS": "SELECT ?x { ?k :a ?x FILTER NOT EXISTS { ?k :b ?y FILTER (%s) } }",
}
Executor = Literal["rows", "columns"]


def drawn(seed: int, size: int, terms: list[Callable[[float], str]], *, crowded: bool) -> list[Event]:
    """Runs of optional events and of others, of two keys; if it is crowded, some last, and some share their time."""
    draw, t, kind = random.Random(seed), 10, "b"
    events: dict[Event, None] = {}
    for _ in range(size):
        t += draw.choice((0, 0, 1)) if crowded else 1
        kind = draw.choice("ab") if draw.random() < 0.3 else kind
        start = t - draw.choice((0, 0, 0, 2)) if crowded else t
        events[_event(start, t, f"k{draw.randrange(2)}", kind, draw.choice(terms)(draw.randrange(30)))] = None
    return list(events)


def by_definition(
    events: list[Event], form: str, passes: Callable[[str, str], bool], within: int | None
) -> list[tuple[str, str | None]]:
    """Each event of :a with those of :b that have ended by its end; a window only leaves out what lasts too long."""
    answers: list[tuple[str, str | None]] = []
    for a in events:
        key, predicate, x = a.triples[0]
        if predicate != "<urn:x:a>":
            continue
        before = (b for b in events if b.triples[0][:2] == (key, "<urn:x:b>") and b.end <= a.end)
        found = [(b.triples[0][2], a.end - min(a.start, b.start)) for b in before if passes(b.triples[0][2], x)]
        if form == "OPTIONAL" and found:
            answers += [(x, y) for y, lasting in found if within is None or lasting <= within * SECOND]
        elif form == "OPTIONAL" or bool(found) == (form == "EXISTS"):
            answers.append((x, None))
    return sorted(answers, key=str)


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("op", COMPARE)
def test_the_answers_are_those_of_the_definition(executor: Executor, form: str, op: str) -> None:
    for seed, (kind, terms) in enumerate(KINDS.items()):
        for crowded in (False, True):
            text = "PREFIX : <urn:x:> " + FORMS[form] % f"?y {op} ?x"
            events = drawn(seed, 160, terms, crowded=crowded)
            engine = Engine(compile(text), executor=executor)
            cut = random.Random(seed).randrange(1, len(events))
            matches = [*engine.push_all(events[:cut]), *engine.push_all(events[cut:]), *engine.close()]
            answers = sorted(((m.bindings["x"], m.bindings.get("y")) for m in matches), key=str)
            assert answers == by_definition(events, form, comparing(op), None), (kind, crowded)


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_window_leaves_out_pairs_and_adds_no_answer_without_a_partner(executor: Executor) -> None:
    text = "PREFIX : <urn:x:> " + FORMS["OPTIONAL"] % "?y > ?x + 5" + " WITHIN 8 s"
    for seed in seeds(6):
        events = drawn(seed, 160, KINDS["exact"], crowded=False)
        engine = Engine(compile(text), executor=executor)
        matches = [*engine.push_all(events), *engine.close()]
        answers = sorted(((m.bindings["x"], m.bindings.get("y")) for m in matches), key=str)
        assert answers == by_definition(events, "OPTIONAL", lambda y, x: comparing("<", 5)(x, y), 8), seed


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [integer, double])
def test_what_lies_beyond_all_is_not_compared_with_all(form: str, kind: Callable[[float], str]) -> None:
    def work(size: int) -> Callable[[], object]:
        engine = Engine(compile("PREFIX : <urn:x:> " + FORMS[form] % "?y > ?x + 1000"), executor="rows")
        engine.push_all(_event(n, n, "k", "b", kind(n % 97)) for n in range(size))
        arriving = [_event(size + n, size + n, "k", "ab"[n % 2], kind(n)) for n in range(400)]
        return lambda: engine.push_all(arriving)

    assert growth(work, 250, lines_of) < 1.8


def _event(start: int, end: int, key: str, kind: str, term: str) -> Event:
    return Event(start * SECOND, end * SECOND, ((f"<urn:x:{key}>", f"<urn:x:{kind}>", term),), "", "")
