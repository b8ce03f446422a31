"""The windowed queries of a session: what is typed at once is a program with an engine of its own.

Queries that feed one another, facts and what counts them are typed together, without an empty line between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from etalis_compiler import ast
from etalis_compiler.diagnostics import Source
from etalis_compiler.parser import parse
from etalis_compiler.windowed import is_windowed

from etalis_py.cli.options import graph_files
from etalis_py.engine.matches import Matches
from etalis_py.events import Event
from etalis_py.knowledge.loading import Source as GraphSource

if TYPE_CHECKING:
    from etalis_py.windows import WindowEngine

Known = Callable[[Mapping[str, GraphSource]], Any]
"""The background with the graphs of these names, or None."""


def has_windows(text: str, prefixes: Mapping[str, str]) -> bool:
    """Whether the text is evaluated over windows."""
    return any(map(is_windowed, parse(text, prefixes=prefixes).queries))


class WindowedQueries:
    """State: the engines, in the order in which their programs were typed."""

    def __init__(self, known: Known, render: Callable[[int], int | str]) -> None:
        self._known, self._render = known, render
        self._engines: list[WindowEngine] = []

    def __bool__(self) -> bool:
        return bool(self._engines)

    def queries(self) -> list[tuple[str, str]]:
        """The names of the queries and their texts."""
        found = []
        for engine in self._engines:
            for document, source in engine.program.documents:
                for query in document.queries:
                    assert query.register is not None
                    found.append((query.register.name, source.text[query.span.start : query.span.end]))
        return found

    def add(self, text: str, prefixes: Mapping[str, str], taken: set[str], start: int | None) -> Iterator[str]:
        """Run the queries of a text from ``start`` on; those without a name, or with a taken one, get a new one."""
        from etalis_py.windows import WindowEngine  # takes a while to import
        from etalis_py.windows.program import windows_of

        source = Source(text)
        document = parse(text, prefixes=prefixes)
        queries = []
        for query in document.queries:
            name = query.register.name if query.register is not None else ""
            if not name or name in taken:
                name = next(n for n in (f"q{i}" for i in range(1, len(taken) + 2)) if n not in taken)
            taken.add(name)
            register = query.register or ast.Register("QUERY", name, span=query.span)
            queries.append(
                replace(query, register=register if register.kind == "STREAM" else replace(register, name=name))
            )
        program = windows_of([(replace(document, queries=tuple(queries)), source)])
        known = self._known(graph_files(program))
        self._engines.append(WindowEngine(program, background=known, explain=True, render=self._render, start=start))
        yield from map(str, program.warnings)
        yield f"{', '.join(program.queries)} runs"

    def push(self, event: Event) -> Iterator[Matches]:
        for engine in self._engines:
            yield engine.push(event)
            engine.dead_letters.clear()  # the session says what came too late

    def advance(self, t: int) -> Iterator[Matches]:
        for engine in self._engines:
            yield engine.advance(t)

    def close(self) -> Iterator[Matches]:
        for engine in self._engines:
            yield engine.close()

    def remove(self, name: str) -> tuple[str, ...]:
        """Stop the program that the query is part of; the names of its queries."""
        for engine in self._engines:
            if name in engine.program.queries:
                self._engines.remove(engine)
                return engine.program.queries
        return ()

    def variables(self) -> dict[str, tuple[str, ...]]:
        """The columns of each query."""
        return {output.query: output.variables for engine in self._engines for output in engine.outputs}

    def plans(self) -> str:
        """What ``explain`` says of them."""
        return "\n".join(engine.program.explain() for engine in self._engines)

    def items(self) -> int:
        """How many items the windows keep."""
        return sum(engine.count().items for engine in self._engines)
