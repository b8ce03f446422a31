"""Blank-node scopes: document labels by document, message labels by content, stream and time, never by position."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py.events.errors import StreamError
from etalis_py.streams import blanks
from etalis_py.streams.blanks import DocumentScope, relabel
from tests.draws import examples

NODES = st.integers(0, 3).map("_:n{}".format)
TERMS = st.one_of(NODES, st.sampled_from(["<urn:a>", '"1"']))
ROWS = st.lists(st.tuples(NODES, st.sampled_from(["<urn:p>", "<urn:q>"]), TERMS, st.just("")), min_size=1, max_size=6)


def shuffled(rows: list, seed: int) -> list:
    """The same message with other labels, in another order."""
    drawn = random.Random(seed)
    names = [f"_:z{index}" for index in range(4)]
    drawn.shuffle(names)
    other = {f"_:n{index}": names[index] for index in range(4)}
    rows = [tuple(other.get(term, term) for term in row) for row in rows]
    drawn.shuffle(rows)
    return rows


@given(ROWS, st.integers(0, 1000))
@settings(max_examples=examples(4 / 3))
def test_labels_do_not_depend_on_labels_or_order(rows: list, seed: int) -> None:
    assert set(relabel(rows, "<urn:s>", "7")) == set(relabel(shuffled(rows, seed), "<urn:s>", "7"))


@given(ROWS)
def test_distinct_nodes_stay_distinct(rows: list) -> None:
    renamed = relabel(rows, "<urn:s>", "7")
    assert len(set(renamed)) == len(set(rows))


def test_labels_depend_on_stream_time_and_content() -> None:
    rows = [("_:a", "<urn:p>", '"1"', "")]
    names = {
        relabel(rows, "<urn:s>", "7")[0][0],
        relabel(rows, "<urn:t>", "7")[0][0],
        relabel(rows, "<urn:s>", "8")[0][0],
        relabel([("_:a", "<urn:p>", '"2"', "")], "<urn:s>", "7")[0][0],
    }
    assert len(names) == 4


def test_many_twins_are_cheap() -> None:
    rows = [
        row for n in range(200) for row in (("<urn:a>", "<urn:p>", f"_:n{n}", ""), (f"_:n{n}", "<urn:q>", '"1"', ""))
    ]
    assert len({row[2] for row in relabel(rows, "", "") if row[1] == "<urn:p>"}) == 200


def test_many_equal_nested_nodes_are_cheap() -> None:
    rows = [
        row
        for n in range(100)
        for row in (
            ("<urn:a>", "<urn:p>", f"_:n{n}", ""),
            (f"_:n{n}", "<urn:q>", f"_:m{n}", ""),
            (f"_:m{n}", "<urn:r>", '"1"', ""),
        )
    ]
    renamed = relabel(rows, "", "")
    assert len({term for row in renamed for term in row if term.startswith("_:")}) == 200
    assert set(renamed) == set(relabel(rows[::-1], "", ""))


def chain(values: list[int]) -> list:
    return [
        row
        for n, value in enumerate(values)
        for row in (
            (f"_:n{n}", "<urn:first>", f'"{value}"', ""),
            (f"_:n{n}", "<urn:rest>", f"_:n{n + 1}" if n + 1 < len(values) else "<urn:nil>", ""),
        )
    ]


def test_a_long_list_of_equal_values_is_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its nodes differ by how far they are from the ends only."""
    calls = []
    colour = blanks._colour
    monkeypatch.setattr(blanks, "_colour", lambda *given: calls.append(1) or colour(*given))
    counts = []
    for length in (2_000, 4_000):
        calls.clear()
        rows = chain([0] * length)
        assert len({row[0] for row in relabel(rows, "", "")}) == length
        counts.append(len(calls))
    assert counts[1] < 2.5 * counts[0]


@settings(max_examples=examples(2 / 3))
@given(
    values=st.lists(st.integers(0, 1), min_size=2, max_size=12),
    rows=ROWS,
    rounds=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_what_is_looked_at_again_is_told_apart_as_by_looking_at_all(
    values: list[int], rows: list, rounds: int, seed: int
) -> None:
    """The labels are others, but equal messages have equal ones, and as many nodes are interchangeable."""
    message = [*chain(values), *((s.replace("n", "m"), p, o.replace("_:n", "_:m"), g) for s, p, o, g in rows)]
    names = blanks._nodes(message)
    mixed = random.Random(seed).sample(names, len(names))
    other = dict(zip(names, mixed, strict=True))
    again = [tuple(other.get(term, term) for term in row) for row in message]
    random.Random(seed).shuffle(again)

    def told_apart() -> int:
        of_node = {node: [row for row in set(message) if node in row] for node in names}
        colour = {node: blanks._colour(node, of_node[node], dict.fromkeys(names, "")) for node in names}
        blanks._refine(colour, of_node)
        return len(set(colour.values()))

    plain = relabel(message, "", "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blanks, "LEAST_ROUNDS", rounds)
        patch.setattr(blanks, "MOST_COLOURS", 0)
        one, two = relabel(message, "", ""), relabel(again, "", "")
    assert set(one) == set(two)
    assert len(set(one)) == len(set(message))
    assert sorted(Counter(row[1:2] for row in one).items()) == sorted(Counter(row[1:2] for row in plain).items())
    assert told_apart() == len(_classes(message, names))


def _classes(rows: list, names: list[str]) -> set[str]:
    """The colours of a refinement that looks at all nodes as often as there are nodes."""
    of_node = {node: [row for row in set(rows) if node in row] for node in names}
    colour = dict.fromkeys(names, "")
    for _ in names:
        colour = {node: blanks._colour(node, of_node[node], colour) for node in names}
    return set(colour.values())


def test_two_triangles_and_a_hexagon_are_told_apart() -> None:
    def cycles(*rings: list[int]) -> list:
        edges = [(f"_:n{a}", f"_:n{b}") for ring in rings for a, b in zip(ring, ring[1:] + ring[:1], strict=True)]
        return [row for a, b in edges for row in ((a, "<urn:p>", b, ""), (b, "<urn:p>", a, ""))]

    triangles = {row[0].split("x")[0] for row in relabel(cycles([0, 1, 2], [3, 4, 5]), "", "")}
    again = {row[0].split("x")[0] for row in relabel(cycles([0, 2, 4], [1, 5, 3]), "", "")}
    hexagon = {row[0].split("x")[0] for row in relabel(cycles([0, 1, 2, 3, 4, 5]), "", "")}
    assert triangles == again
    assert triangles != hexagon


def test_a_message_too_symmetrical_is_refused_with_advice() -> None:
    ring = [(f"_:n{n}", "<urn:p>", f"_:n{(n + 1) % 30}", "") for n in range(30)]
    with pytest.raises(StreamError, match="cannot be told apart") as caught:
        relabel(ring, "", "")
    assert "give them IRIs" in str(caught.value)


def test_a_document_label_means_one_node_in_its_document_only() -> None:
    one, two = DocumentScope("<urn:s>", "a.nq"), DocumentScope("<urn:s>", "b.nq")
    assert one.rename("_:x") == one.rename("_:x")
    assert (
        len({one.rename("_:x"), one.rename("_:y"), two.rename("_:x"), DocumentScope("<urn:t>", "a.nq").rename("_:x")})
        == 4
    )


def test_unlabelled_nodes_of_a_parser_are_numbered() -> None:
    drawn = ["_:" + "a" * 32, "_:" + "b" * 32]
    one, other = DocumentScope("", "d"), DocumentScope("", "d")
    assert [one.rename_parsed(term) for term in drawn] == [other.rename_parsed(term) for term in reversed(drawn)]
    assert one.rename_parsed(drawn[0]) == one.rename_parsed(drawn[0])
    assert one.rename_parsed("_:x") == one.rename("_:x")
