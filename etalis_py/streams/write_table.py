"""Matches as a table for people: on a terminal the last rows are redrawn in place, elsewhere there are plain lines."""

from __future__ import annotations

import os
import shutil
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from typing import IO, Any

from etalis_rules.messages import how_many
from etalis_rules.terms import XSD, iri_value, is_iri, is_literal, parts
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from etalis_py.events.errors import sink_error
from etalis_py.streams.sinks import Match, is_construct, is_retracted, solution, spelled

ROWS = 20
_NUMBERS = ("integer", "decimal", "double", "float", "boolean")
_TIMES = ("dateTime", "date", "time", "duration", "dayTimeDuration", "yearMonthDuration")
_BARE = frozenset(XSD + name for name in (*_NUMBERS, *_TIMES))
_FLOATS = frozenset((XSD + "double", XSD + "float"))
_WIDEST_FLOAT = 12
_CONTROLS = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127)) | {9: " ", 10: "⏎", 13: "⏎"}


def show_term(term: str, prefixes: Mapping[str, str]) -> str:
    """A term for people: IRIs with a prefix if there is one, numbers, times and texts bare.

    >>> show_term("<http://ex.org/a>", {"ex": "http://ex.org/"}), show_term('"chat"@fr', {})
    ('ex:a', 'chat@fr')
    >>> show_term('"PT1H"^^<http://www.w3.org/2001/XMLSchema#dayTimeDuration>', {})
    'PT1H'
    >>> show_term('"2.5E-1"^^<http://www.w3.org/2001/XMLSchema#double>', {})
    '0.25'
    """
    if is_iri(term):
        value = iri_value(term)
        fitting = [(len(base), name, base) for name, base in prefixes.items() if base and value.startswith(base)]
        if fitting:
            _, name, base = max(fitting)
            return f"{name}:{value[len(base) :]}".translate(_CONTROLS)
        return term
    if is_literal(term):
        lexical, datatype, language = parts(term)
        # Control characters would move the cursor of the terminal.
        lexical = lexical.translate(_CONTROLS)
        if language:
            return f"{lexical}@{language}"
        if datatype in _FLOATS:
            return _short_float(lexical)
        return lexical if not datatype or datatype in _BARE else f"{lexical}^^{show_term(f'<{datatype}>', prefixes)}"
    return term


def _short_float(lexical: str) -> str:
    """A double without an exponent where that is short: ``2.5E-1`` is 0.25; ``1.0E30`` stays what it is."""
    try:
        plain = repr(float(lexical))
    except ValueError:  # ill-typed
        return lexical
    return plain if "e" not in plain and len(plain) <= _WIDEST_FLOAT else lexical


def _row(match: Match, variables: Sequence[str], prefixes: Mapping[str, str]) -> list[str]:
    times = [spelled(match.start), spelled(match.end)]
    if is_construct(match):
        shown = " .  ".join(" ".join(show_term(term, prefixes) for term in triple) for triple in match.triples or ())
        return [shown, *times]
    bindings = solution(match)
    return [*(show_term(bindings.get(name, ""), prefixes) for name in variables), *times]


def _names(match: Match, variables: Sequence[str] | None) -> tuple[str, ...]:
    if is_construct(match):
        return ("triples",)
    # The columns asked for, then any other bound variables: nothing is hidden.
    extra = sorted(set(solution(match)) - set(variables or ()))
    return (*(variables or ()), *extra)


class PlainTable:
    """Lines of cells; a new heading whenever the query or its columns change."""

    def __init__(self, variables: Sequence[str] | None, prefixes: Mapping[str, str], *, revised: bool = False) -> None:
        self._variables, self._prefixes = variables, prefixes
        self._more = ("retracted",) if revised else ()
        self._heading: tuple[str, tuple[str, ...]] | None = None
        self._widths: list[int] = []

    def begin(self) -> str:
        return ""

    def render(self, match: Match) -> str:
        names = _names(match, self._variables)
        cells = [*_row(match, names, self._prefixes), *("yes" * is_retracted(match) for _ in self._more)]
        lines = []
        if self._heading != (match.query, names):
            first = self._heading is None
            self._heading = (match.query, names)
            titles = [*(name if name == "triples" else f"?{name}" for name in names), "start", "end", *self._more]
            self._widths = [max(len(title), len(cell), 8) for title, cell in zip(titles, cells, strict=True)]
            lines += [*([] if first else [""]), f"# {match.query}", self._line(titles)]
            lines.append("-+-".join("-" * width for width in self._widths))
        return "\n".join((*lines, self._line(cells), ""))

    def _line(self, cells: Sequence[str]) -> str:
        return " | ".join(cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True)).rstrip()

    def end(self) -> str:
        self._heading = None
        return ""


def wants_live(target: str | os.PathLike[str] | IO[str]) -> bool:
    """Whether the target is a terminal, where a table can be redrawn."""
    return target == "-" and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class LiveTable:
    """The last matches of every query, redrawn in place a few times a second; the last picture stays."""

    def __init__(
        self,
        variables: Sequence[str] | None,
        prefixes: Mapping[str, str],
        console: Console | None = None,
    ) -> None:
        self._variables, self._prefixes = variables, prefixes
        self._rows: dict[tuple[str, tuple[str, ...]], deque[list[str]]] = {}
        self._counts: dict[tuple[str, tuple[str, ...]], int] = {}
        self._console = console or Console()
        self._live: Live | None = None
        self.written = 0

    def write(self, match: Match) -> None:
        names = _names(match, self._variables)
        key = (match.query, names)
        height = max(3, min(ROWS, shutil.get_terminal_size().lines - 8))
        rows = self._rows.setdefault(key, deque(maxlen=height))
        rows.append([f"✗ {cell}" if is_retracted(match) else cell for cell in _row(match, names, self._prefixes)])
        self._counts[key] = self._counts.get(key, 0) + 1
        self.written += 1
        try:
            if self._live is None:
                self._live = Live(console=self._console, refresh_per_second=8, get_renderable=self._picture)
                self._live.start()
        except OSError as error:
            raise sink_error(error, "the terminal") from None

    def _picture(self) -> Any:
        tables = []
        for (query, names), rows in list(self._rows.items()):
            count = self._counts[query, names]
            caption = how_many(count, "match", "matches") + (
                f", the last {len(rows)} shown" if count > len(rows) else ""
            )
            table = Table(title=query, caption=caption, title_justify="left")
            for name in names:
                table.add_column(Text(name if name == "triples" else f"?{name}"), overflow="fold")
            table.add_column("start")
            table.add_column("end")
            for row in list(rows):
                table.add_row(*map(Text, row))
            tables.append(table)
        return Group(*tables)

    def flush(self) -> None:
        """Do nothing: the picture is redrawn by the clock, as drawing it takes longer than hundreds of matches."""

    def close(self) -> None:
        if self._live is not None:
            live, self._live = self._live, None
            live.refresh()
            live.stop()

    def __enter__(self) -> LiveTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
