"""The commands read tables, and backgrounds that are tables, by the empty prefix of the query."""

from __future__ import annotations

import pytest

from etalis_py.cli import local_run
from tests.cli.conftest import Folder

READ = ("--stream", "s.csv", "--time", "t", "--subject", "dev")


@pytest.fixture
def shop(folder: Folder) -> Folder:
    folder.write("s.csv", "t,dev,temp\n1,a,5\n2,b,7\n")
    folder.write("limits.csv", "dev,limit\na,3\nb,9\n")
    folder.write("limits.toml", 'subject = ":{dev}"\npredicate = ":limit"\nobject = "{limit}"\n')
    folder.write("hot.rq", "PREFIX : <http://shop.test/> SELECT ?d { ?d :temp ?x FILTER (?x > 9) }")
    folder.write("above.rq", "PREFIX : <http://shop.test/> SELECT ?d { ?d :temp ?x ; :limit ?l FILTER (?x > ?l) }")
    return folder


@pytest.mark.parametrize("mapping", [(), ("--background-mapping", "limits.toml")])
def test_run_and_check(shop: Folder, mapping: tuple[str, ...]) -> None:
    asked = ("above.rq", *READ, "--background", "limits.csv", *mapping)
    assert '"http://shop.test/a"' in shop.etalis("run", *asked).stdout
    assert "never occurred" not in shop.etalis("check", *asked).stderr


def test_why_not(shop: Folder) -> None:
    assert "5 > 9 fails by 4" in shop.etalis("why-not", "hot.rq", *READ, "--where", "?d = :a").stdout


def test_the_condition_that_a_run_without_matches_names(shop: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_run, "on_terminal", lambda: True)
    assert "most refused by FILTER (?x > 9)" in shop.etalis("run", "hot.rq", *READ).stderr
