"""Values that an option of the engine cannot have are refused where they are given."""

from __future__ import annotations

from typing import Any

import pytest

from etalis_py import Engine, run

QUERY = "SELECT ?x { ?c <urn:p> ?x }"
WINDOW = "SELECT ?x FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT5S STEP PT5S] { WINDOW <urn:w> { ?c <urn:p> ?x } }"


@pytest.mark.parametrize(
    ("query", "options", "reason"),
    [
        (QUERY, {"entailment": "owl"}, "'owl' is not an entailment regime\n  one of rdf, rdfs, rdfs-full, owlrl"),
        (QUERY, {"explain": "yes"}, "explain='yes': it is True or False"),
        (QUERY, {"eager": 0}, "eager=0: it is True or False"),
        (QUERY, {"limits": 5}, "limits=5: give Limits(…), of etalis_py"),
        (WINDOW, {"report": "WC"}, "report='WC': give the report policy of each windowed query by its name"),
        (WINDOW, {"report": {"q1": ["WC"]}}, "the report policy of q1 is ['WC']: give a list such as [Strategy("),
        (WINDOW, {"report": {"q1": 1}}, "the report policy of q1 is 1: give a list such as [Strategy("),
        (WINDOW, {"report": {"q2": []}}, "report policies are given for q2; the queries with windows are q1"),
    ],
)
def test_what_an_option_cannot_be_is_refused(query: str, options: Any, reason: str) -> None:
    for begin in (lambda: Engine(query, **options), lambda: run(query, [], **options)):
        with pytest.raises((TypeError, ValueError)) as error:
            begin()
        assert str(error.value).startswith(reason)
