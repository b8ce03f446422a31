"""The parse tables: ``grammar.lark`` turned into LALR(1) tables by Lark, and kept as JSON.

Lark reads the grammar and computes the tables; that takes a few tenths of a second, with loading Lark.  The result is
plain data, so it is kept in the user's cache directory as JSON under a hash of the grammar (no pickle, nothing
executable), and read back in a few milliseconds; without a writable cache it is computed once per process.
``automaton`` runs the tables.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

FORMAT = 3  # it is in the name of a cached file, so that tables in another form are never read
START = "document"

# the token types whose text is not fixed, declared to Lark and filled by lexing.py
DECLARED = (
    *("IRIREF", "PNAME_LN", "PNAME_NS", "NAME", "VAR", "BLANK", "BUILTIN", "AGGREGATE"),
    *("STRING", "LANGTAG", "INTEGER", "NUMBER", "SIGNED", "DURATION"),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A production.

    ``handler`` is the builder's method, ``""`` for a rule that passes its only child on and ``"_"`` for one whose
    children are spliced into the parent.  ``template`` has the arguments of the handler: the number of a child,
    ``~number`` for a child to be spliced, None for an omitted optional part.
    """

    origin: str
    size: int
    handler: str
    template: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Tables:
    """``states[s][symbol]`` is the next state, or ``~rule`` for a reduction."""

    literals: dict[str, str]
    rules: tuple[Rule, ...]
    states: tuple[dict[str, int], ...]
    start: int
    end: int


def grammar_text() -> str:
    return resources.files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")


def compute(grammar: str) -> dict[str, Any]:
    """The tables as plain data, from Lark's analysis of the grammar."""
    from lark import Lark  # only needed when the cache is cold

    declared = "%declare " + " ".join(DECLARED) + "\n"
    lark = Lark(grammar + "\n" + declared, parser="lalr", lexer="basic", start=START, maybe_placeholders=True)
    table = lark.parser.parser.parser.parse_table
    rules = {rule for row in table.states.values() for _, rule in row.values() if not isinstance(rule, int)}
    ordered = sorted(rules, key=lambda r: (r.origin.name, [s.name for s in r.expansion], r.order))
    numbers = {rule: number for number, rule in enumerate(ordered)}
    states = _in_reading_order(table.states, table.start_states[START])
    place = {state: number for number, state in enumerate(states)}
    return {
        "format": FORMAT,
        "literals": {t.pattern.value: t.name for t in lark.terminals if t.pattern is not None},
        "rules": [_rule(rule) for rule in ordered],
        "states": [
            {
                symbol: place[target] if isinstance(target, int) else ~numbers[target]
                for symbol, (_, target) in sorted(table.states[state].items(), key=lambda item: item[0])
            }
            for state in states
        ],
        "start": place[table.start_states[START]],
        "end": place[table.end_states[START]],
    }


def _in_reading_order(rows: dict[int, Any], start: int) -> list[int]:
    """The states in the order of a walk from the first one: Lark's own numbers differ from run to run."""
    order = [start]
    seen = {start}
    for state in order:
        for _, (_, target) in sorted(rows[state].items(), key=lambda item: item[0]):
            if isinstance(target, int) and target not in seen:
                seen.add(target)
                order.append(target)
    return order


def _rule(rule: Any) -> list[Any]:
    """One of Lark's rules as ``[origin, size, handler, template]``."""
    blanks = rule.options.empty_indices or (False,) * len(rule.expansion)
    template: list[int | None] = []
    at = 0
    for blank in blanks:
        if blank:
            template.append(None)
            continue
        symbol = rule.expansion[at]
        if not symbol.is_term and symbol.name.startswith("_"):
            template.append(~at)
        elif rule.options.keep_all_tokens or not (symbol.is_term and symbol.filter_out):
            template.append(at)
        at += 1
    origin = str(rule.origin.name)
    handler = rule.alias or origin
    if origin.startswith("_"):
        handler = "_"
    elif rule.options.expand1 and not rule.alias and len(template) == 1 and (template[0] or 0) >= 0:
        handler = ""
    return [origin, len(rule.expansion), handler, template]


def from_data(data: dict[str, Any]) -> Tables:
    return Tables(
        literals=data["literals"],
        rules=tuple(Rule(origin, size, handler, tuple(template)) for origin, size, handler, template in data["rules"]),
        states=tuple(data["states"]),
        start=data["start"],
        end=data["end"],
    )


def cache_directory() -> Path:
    """The folder in which results are kept between runs: ``ETALIS_CACHE_DIR``, else the user's cache directory."""
    if chosen := os.environ.get("ETALIS_CACHE_DIR"):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "etalis-py"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "etalis-py"


@lru_cache(maxsize=1)
def load() -> Tables:
    """The tables of the grammar: from the cache, or computed and put there.

    A cache that cannot be read or written only costs time: the tables follow from the grammar alone.
    """
    grammar = grammar_text()
    key = hashlib.sha256(f"{FORMAT}\n{' '.join(DECLARED)}\n{grammar}".encode()).hexdigest()[:24]
    name = f"grammar-{key}.json"
    try:
        return from_data(json.loads((cache_directory() / name).read_text(encoding="utf-8")))
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        data = compute(grammar)
    with suppress(OSError, RuntimeError):
        _write(cache_directory() / name, json.dumps(data, separators=(",", ":")))
    return from_data(data)


def _write(path: Path, text: str) -> None:
    """Write the file atomically, even if another process writes it at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
