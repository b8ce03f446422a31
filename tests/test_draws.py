"""A seed draws the same examples in every run, whatever modules are loaded."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from tests import draws
from tests.conftest import SEED


def drawn() -> list[int]:
    numbers: list[int] = []

    @seed(SEED)
    @settings(max_examples=400, database=None)
    @given(st.integers())
    def draw(number: int) -> None:
        numbers.append(number)

    draw()
    return numbers


@pytest.mark.skipif("config.getoption('--nightly')", reason="a nightly run takes constants of modules, too")
def test_constants_of_modules_are_not_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn()
    constants = {1_000_003 * n for n in range(100, 400)}
    (tmp_path / "full_of_constants.py").write_text("\n".join(map(str, sorted(constants))), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import_module("full_of_constants")
    assert drawn() == before
    assert len(set(before)) > 100
    assert not constants & set(before)


@pytest.mark.parametrize(("profile", "seeds", "length"), [("few", 1, 60), ("default", 6, 150), ("nightly", 6, 150)])
def test_only_a_quick_look_draws_less_by_itself(
    profile: str, seeds: int, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also inside a test with few examples of its own."""
    monkeypatch.setattr(draws, "_loaded", profile)
    seen = []

    @settings(max_examples=draws.FEW, database=None)
    @given(st.integers())
    def draw(number: int) -> None:
        seen.append((len(draws.seeds(6)), draws.length(150)))

    draw()
    assert set(seen) == {(seeds, length)}


def test_a_quick_look_takes_every_third_of_many_cases() -> None:
    cases = [f"test.py::test_it[{n}]" for n in range(30)]
    assert draws.left_out([*cases, "test.py::test_other"]) == {*cases} - {*cases[::3]}
    assert draws.left_out(cases[: draws.MANY]) == set()
