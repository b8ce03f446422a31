"""The W3C SPARQL query evaluation tests through the engine, for [EP] §4.2: downward compatibility.

The default graph's triples are streamed as one event, so all of them occur at one instant; named graphs and what FROM
names are background.  Every answer then holds at that instant, or is timeless.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from etalis_py import Engine, Event, LimitExceeded, Limits, Match, compile
from etalis_py.knowledge import load
from etalis_py.knowledge.loading import read

from . import w3c

T = 5_000_000
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "conformance.md"
ENTRIES = list(w3c.entries())

# What fails, and why; docs/conformance.md tells the same.
FAILURES: dict[str, str] = {}
SMALL = Limits(derivations=20_000, rounds=1_000)  # what does not end within an instant is to fail soon

if not ENTRIES:
    pytest.skip(f"the W3C SPARQL tests are not at {w3c.SUITE}", allow_module_level=True)


def triples(path: Path) -> list[w3c.Triple]:
    """The triples of a document, with the relative IRIs it has upstream."""
    return [t for found in read(path, base=w3c.url(path)).values() for t in found]


def answers(entry: w3c.Entry) -> list[Match]:
    """Stream the data, with the rest as background."""
    text = entry.query.read_text(encoding="utf-8")
    default, named = [], {w3c.url(f): [triples(f)] for f in entry.named}
    for kind, file in re.findall(r"(?i)\bFROM\s+(NAMED\s+)?<([^>]*)>", text):
        path = entry.query.parent / file
        if kind:
            named[w3c.url(path)] = [triples(path)]
        else:
            default.append(triples(path))
    knowledge = load(default, named=named, entailment="rdf", cache=False)
    engine = Engine(compile([text + "\n"], base=w3c.url(entry.query)), background=knowledge, limits=SMALL)
    data = tuple(dict.fromkeys(t for path in entry.data for t in triples(path)))
    return [*(engine.push(Event(T, T, data)) if data else ()), *engine.close()]


def check(entry: w3c.Entry) -> None:
    found = answers(entry)
    assert all((m.start_us, m.end_us) in ((T, T), (None, None)) for m in found), "an answer at another time"
    is_expected(entry, found)


def is_expected(entry: w3c.Entry, found: Sequence[Match]) -> None:
    """The matches are what the suite expects."""
    wanted = w3c.expected(entry.result)
    if wanted.boolean is not None:
        assert [m.boolean for m in found] == [wanted.boolean]
    elif wanted.graph is not None:
        made = {t for m in found for t in m.triples or ()}
        assert w3c.same_graph(made, wanted.graph), f"made {sorted(made)}, expected {sorted(wanted.graph)}"
    else:
        rows = [tuple(sorted(m.bindings.items())) for m in found]
        same = w3c.same_rows(rows, wanted.rows, wanted.ordered, entry.lax)
        assert same, "found\n  " + "\n  ".join(map(str, rows)) + "\nexpected\n  " + "\n  ".join(map(str, wanted.rows))


def test_all_of_them_are_found() -> None:
    assert len(ENTRIES) == 250
    assert FAILURES.keys() <= {e.name for e in ENTRIES}


def test_the_documentation_lists_what_fails() -> None:
    text = DOCUMENTATION.read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([^`]+)` \|", text, re.M))
    assert listed == FAILURES.keys()
    assert f"**{len(ENTRIES) - len(FAILURES)} of {len(ENTRIES)}**" in text


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_evaluation(entry: w3c.Entry) -> None:
    if entry.name not in FAILURES:
        check(entry)
        return
    with pytest.raises((AssertionError, LimitExceeded)):  # a listed failure that passes must leave the list
        check(entry)
