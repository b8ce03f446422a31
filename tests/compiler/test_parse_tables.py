"""The parse tables: how they are kept, how fast they load, and where the grammar leaves the choice to us."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from etalis_compiler import tables
from etalis_compiler.building import SyntaxBuilder

pytestmark = pytest.mark.usefixtures("still_heap")


def fresh() -> tables.Tables:
    return tables.load.__wrapped__()


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tables.Tables]:
    """A cache and what was put there: computing it takes a while."""
    folder = tmp_path_factory.mktemp("computed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ETALIS_CACHE_DIR", str(folder))
        return folder, fresh()


@pytest.fixture
def cache(computed: tuple[Path, tables.Tables], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ETALIS_CACHE_DIR", str(tmp_path / "cache"))
    return Path(shutil.copytree(computed[0], tmp_path / "cache"))


def test_every_rule_has_its_method() -> None:
    for rule in fresh().rules:
        assert rule.handler in ("", "_") or rule.handler.startswith("$") or hasattr(SyntaxBuilder, rule.handler), rule


def test_the_cache_holds_plain_json_and_gives_the_same_tables(
    cache: Path, computed: tuple[Path, tables.Tables]
) -> None:
    (file,) = cache.iterdir()
    assert json.loads(file.read_text(encoding="utf-8"))["format"] == tables.FORMAT
    assert fresh() == computed[1]


def test_a_cached_parser_loads_within_a_tenth_of_a_second_and_without_lark(cache: Path) -> None:
    code = """
import sys, time
from etalis_compiler import parser, tables
started = time.process_time()
tables.load()
assert time.process_time() - started < 0.1
parser.parse("SELECT * {}")
assert "lark" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": 1}', "\x00"])
def test_a_spoilt_cache_is_made_again(cache: Path, computed: tuple[Path, tables.Tables], content: str) -> None:
    (file,) = cache.iterdir()
    file.write_text(content, encoding="utf-8")
    assert fresh() == computed[1]
    made_again = file.read_text(encoding="utf-8")
    assert made_again != content
    assert fresh() == computed[1]


def test_without_a_writable_cache_the_tables_are_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("ETALIS_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert fresh().states


def test_the_tables_are_computed_within_seconds() -> None:
    started = time.process_time()
    tables.compute(tables.grammar_text())
    assert time.process_time() - started < 10


def test_the_choices_that_the_grammar_leaves_open() -> None:
    """LALR(1) resolves a conflict between going on and finishing by going on.  These are all there are, and meant."""
    found: set[tuple[str, str]] = set()
    import logging

    from lark import Lark, logger

    class Collect(logging.Handler):
        terminal = ""

        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            if "Shift/Reduce" in message:
                Collect.terminal = message.split("terminal ")[1].split(":")[0]
            elif message.startswith(" * "):
                found.add((message.split("<")[1].split(" ")[0], Collect.terminal))

    collect, level = Collect(), logger.level
    logger.addHandler(collect)
    logger.setLevel(logging.DEBUG)
    try:
        declared = "%declare " + " ".join(tables.DECLARED)
        Lark(f"{tables.grammar_text()}\n{declared}\n", parser="lalr", lexer="basic", start=tables.START)
    finally:
        logger.removeHandler(collect)
        logger.setLevel(level)
    assert found == {
        # 5 MINUTES, 3 EVENTS: a word after a number is its unit
        *(("amount", unit) for unit in ("NAME", "EVENT", "EVENTS", "TRIPLE", "TRIPLES", "BGP")),
        # a WITHIN directly after a group is the group's (the builder lifts the one that ends WHERE)
        ("equal_chain", "WITHIN"),
        # {A} REPEAT 3 NOT {B}, BY ?u ?v, and SEQ {A} REPEAT 3: what a REPEAT may say is the REPEAT's
        *(("operand", clause) for clause in ("NOT",)),
        ("repeat_clause", "VAR"),
        # DISJOINT BY ?u ?v: all variables that follow are BY's
        ("skip_by", "VAR"),
        # USING POLICY may stand after WHERE or last, which is the same place when nothing is between
        ("where", "USING"),
    }
