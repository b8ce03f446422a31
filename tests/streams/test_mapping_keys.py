"""Values of a mapping that have the wrong type, or contradict each other, are refused before the first row."""

from typing import Any

import pytest

from etalis_py import run
from etalis_py.streams import StreamError

ROWS: dict[str, Any] = {"time": "{at}", "subject": ":{id}", "predicate": ":v", "object": "{v}"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"missing": "xy"}, r"'missing' must be a list of texts, not 'xy'\n  such as missing = \[\"n/a\", \"-999\"\]"),
        ({"missing": [-999]}, r"'missing' must be a list of texts, not \[-999\]"),
        ({"columns": "at,id,v"}, "'columns' must be a list of texts, not 'at,id,v'"),
        ({"columns": ["a", "b"]}, "'columns' lacks 'at', which the mapping names\n  list all columns, in their order"),
        ({"time_unit": ["ms"]}, r"'time_unit' must be a text, not \['ms'\]"),
        ({"time_zone": 1, "time_format": "%Y"}, "'time_zone' must be a text, not 1"),
        ({"time_format": 2026}, "'time_format' must be a text, not 2026"),
        ({"prefixes": "shop"}, "'prefixes' must be a table of IRIs"),
        ({"prefixes": {"shop": 1}}, "'prefixes' must be a table of IRIs"),
        (
            {"time_unit": "ms", "time_format": "%Y"},
            "'time_unit' is for times that are numbers, and 'time_format' for others\n  leave one of them out",
        ),
    ],
)
def test_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(StreamError, match=message):
        list(run("SELECT ?x { ?id :v ?x }", [{"at": 1, "id": "a", "v": "x"}], mapping={**ROWS, **keys}))


def test_missing_may_be_a_tuple() -> None:
    rows = [{"at": 1, "id": "a", "v": "x"}, {"at": 2, "id": "a", "v": "y"}]
    found = run("SELECT ?x { ?id :v ?x }", rows, mapping={**ROWS, "missing": ("x",)})
    assert [match["x"] for match in found] == ["y"]
