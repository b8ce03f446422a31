"""N-Quads whose blocks other processes read: the same items, counts and errors, wherever the blocks are cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from etalis_py.events.clock import render_datetime
from etalis_py.streams import documents, read_stream
from etalis_py.streams.columns import elements, nquads
from etalis_py.streams.columns.shared_blocks import Read, SharedBlocks, Taken
from etalis_py.streams.elements import Counters, StreamContext
from tests.draws import examples, seeds

from .documents import FROM, ODD, PROV, TO, XSD, drawn
from .reading import Refused, outcome


class ReadAhead:
    """Takes blocks as a reader would, in this process."""

    is_reader = False

    def taken(self, number: int, read: Read, context: StreamContext) -> Taken | None:
        if context.times.clock is None:
            return None
        before, latest, report, arrival = replace(context.counters), context.latest, context.report, context.arrival
        context.report, context.arrival = lambda error: None, lambda: (0, 0)
        try:
            taken = SharedBlocks._read(read, context)
        finally:
            context.report, context.latest, context.arrival = report, latest, arrival
            for name, value in zip(Counters.__slots__, astuple(before), strict=True):
                setattr(context.counters, name, value)
        return taken

    def events(self, number: int, read: Read, context: StreamContext) -> Iterator[Any] | None:
        return read()


@pytest.fixture
def joins(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each block that was taken, whether it could be joined to what came before."""
    found: list[bool] = []

    def joined(*given: Any) -> Any:
        found.append((result := nquads_joined(*given)) is not None)
        return result

    nquads_joined = nquads.joined
    monkeypatch.setattr(nquads, "joined", joined)
    return found


def check(text: str, path: Path, **options: Any) -> Any:
    """The file gives the same, read by one process and with blocks that others have read; returns what it gives."""
    path.write_bytes(text.encode("utf-8", "surrogateescape"))

    def seen(ahead: bool) -> Any:
        refused, clock = Refused(), count(1000)
        options["dead_letters"] = refused

        def open_file() -> Any:
            stream = read_stream(path, format="nq", now=lambda: next(clock), **options)
            if ahead:
                stream.share(ReadAhead())
            return stream

        return outcome(open_file, bulk=True), refused.errors

    expected = seen(ahead=False)
    assert seen(ahead=True) == expected
    return expected


@pytest.mark.parametrize("seeds", [range(60 * n, 60 * n + 60) for n in seeds(4)], ids=str)
def test_any_document_and_any_blocks(seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in seeds:
        text, options = drawn(seed)
        chosen = Random(seed)
        monkeypatch.setattr(nquads, "BLOCK", chosen.choice([64, 300, 2000]))
        monkeypatch.setattr(nquads, "_FEW", chosen.choice([1, 2, 64]))
        remembered = chosen.choice([3, 10, 100_000])
        monkeypatch.setattr(documents, "REMEMBERED", remembered)
        monkeypatch.setattr(elements, "REMEMBERED", remembered)
        check(text, tmp_path / "s.nq", **options)


def quads(graph: str, values: range) -> list[str]:
    return [f'<urn:a{n}> <urn:p> "{n}" {graph} .' for n in values]


def time(graph: str, n: int, predicate: str = PROV) -> str:
    return f'{graph} {predicate} "{render_datetime(1_767_225_600_000_000 + 1_000_000 * n)}"^^<{XSD}dateTime> .'


SHAPES = {
    "after": lambda n: [*quads(f"<urn:g{n}>", range(n, n + 1)), time(f"<urn:g{n}>", n)],
    "before": lambda n: [time(f"<urn:g{n}>", n), *quads(f"<urn:g{n}>", range(n, n + n % 4 + 1))],
    "inside": lambda n: [
        *quads(f"_:g{n}", range(3)), time(f"_:g{n}", n)[:-2] + f" _:g{n} .", *quads(f"_:g{n}", range(5, 7)), "# c",
    ],
    "around": lambda n: [
        time(f"<urn:ä{n}>", n, FROM), *quads(f"<urn:ä{n}>", range(n % 3 + 1)), time(f"<urn:ä{n}>", n + 1, TO)
    ],
    "described": lambda n: [
        *quads(f"<urn:g{n}>", range(2)), f'<urn:g{n}> <urn:note> "{n}" .', time(f"<urn:g{n}>", n)
    ],
}  # fmt: skip


def mixed(random: Random) -> list[str]:
    """Usual elements, and now and then a line about another one, or a line that is odd."""
    lines = []
    share = random.choice([0, 0.02, 0.1])
    for n in range(60):
        shape = random.choice([name for name in SHAPES if name != "around"])
        lines += SHAPES[shape](n)
        if random.random() < share:
            name = f"<urn:g{n + random.randint(-30, 2)}>"
            place = random.randint(max(0, len(lines) - 6), len(lines))
            lines.insert(place, random.choice([*quads(name, range(1)), time(name, n), *ODD]))
    return lines


def test_usual_elements_with_lines_about_others_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joins: list[bool]
) -> None:
    for seed in range(examples(0.5)):
        random = Random(seed)
        monkeypatch.setattr(nquads, "BLOCK", random.choice([400, 1000, 3000]))
        monkeypatch.setattr(nquads, "_FEW", 2)
        remembered = random.choice([3, 10, 100_000])
        monkeypatch.setattr(documents, "REMEMBERED", remembered)
        monkeypatch.setattr(elements, "REMEMBERED", remembered)
        text = "".join(line + "\n" for line in mixed(random))
        check(text, tmp_path / "s.nq", on_error=random.choice(["stop", "skip", "skip"]))
    assert sum(joins) > len(joins) / 3


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [1111, 4096])
def test_usual_documents_are_not_read_twice(
    shape: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joins: list[bool]
) -> None:
    monkeypatch.setattr(nquads, "BLOCK", size)
    monkeypatch.setattr(nquads, "_FEW", 2)
    text = "".join(line + "\n" for n in range(300) for line in SHAPES[shape](n))
    options = {"start_predicate": FROM, "end_predicate": TO} if shape == "around" else {}
    (items, counters, _, error), refused = check(text, tmp_path / "s.nq", **options)
    assert len(items) == counters.events == 300
    assert not error
    assert not refused
    assert all(joins)
    assert len(joins) >= len(text) // size // 2


def test_what_depends_on_other_blocks_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joins: list[bool]
) -> None:
    """A graph goes on much later, without a time; and another much later with a time of its own."""
    monkeypatch.setattr(nquads, "BLOCK", 500)
    monkeypatch.setattr(nquads, "_FEW", 2)
    lines = [line for n in range(100) for line in SHAPES["after"](n)]
    lines[150:150] = quads("<urn:g3>", range(1))
    lines[100:100] = [*quads("<urn:g4>", range(1)), time("<urn:g4>", 80)]
    (items, counters, _, _), _ = check("".join(line + "\n" for line in lines), tmp_path / "s.nq")
    assert counters.events == 102
    assert [item.end - 1_767_225_600_000_000 for item in items if item.graph == "<urn:g3>"] == [3_000_000] * 2
    assert any(joins)
