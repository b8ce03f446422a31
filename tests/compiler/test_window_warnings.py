"""Windows that show more, or less, than is probably meant."""

from __future__ import annotations

import pytest

from etalis_py import compile


def test_a_window_that_slides_further_than_it_reaches() -> None:
    def warnings(window: str) -> list[tuple[str, str]]:
        text = f"SELECT ?x FROM NAMED WINDOW <urn:w> ON <urn:s> [{window}] {{ WINDOW <urn:w> {{ ?x :p ?v }} }}"
        return [(warning.code, warning.message) for warning in compile(text).warnings]

    told = "the window <urn:w> of q1 is PT5S long and slides by PT1M, so it never shows what comes between"
    assert warnings("RANGE PT5S SLIDE PT1M") == [("gap", told)]
    assert warnings("RANGE PT1M SLIDE PT5S") == warnings("RANGE PT1M SLIDE PT1M") == warnings("RANGE PT1M") == []


@pytest.mark.parametrize(
    ("window", "told"),
    [
        ("RANGE P1D SLIDE PT1S", []),
        ("RANGE PT1S SLIDE PT0.000001S", ["overlap"]),
        ("RANGE P2D SLIDE PT1S", ["overlap"]),
        ("RANGE P2D", []),
    ],
)
def test_a_window_that_reports_each_item_very_often(window: str, told: list[str]) -> None:
    text = f"SELECT ?x FROM NAMED WINDOW <urn:w> ON <urn:s> [{window}] {{ WINDOW <urn:w> {{ ?x :p ?v }} }}"
    assert [warning.code for warning in compile(text).warnings] == told
    changing = text.replace(" { WINDOW", " REPORT ON CONTENT CHANGE { WINDOW")
    assert "overlap" not in [warning.code for warning in compile(changing).warnings]
