"""``etalis run --executor both``: rows and columns side by side, and the first difference between their answers.

Both engines get the same calls.  If their matches differ, the calls so far are repeated on two engines whose nodes
report, too: the first node whose solutions differ is where to look.  So the input is kept in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from etalis_compiler.explain import Explanation, explain

from etalis_py.cli.errors import Failure

if TYPE_CHECKING:
    from etalis_py import Engine
    from etalis_py.kernel.matches import Match, Matches

Make = Callable[[Literal["rows", "columns"], bool], "Engine"]
"""Makes an engine with an executor, whose nodes report or not."""
Call = tuple[str, tuple[Any, ...], dict[str, Any]]
_SHOWN = 3


class Both:
    """Looks like the engine of rows; an engine of columns gets the same calls and must answer the same."""

    def __init__(self, make: Make, prefixes: Mapping[str, str]) -> None:
        self._make, self._prefixes = make, prefixes
        self._rows, self._columns = make("rows", False), make("columns", False)
        self._calls: list[Call] = []
        self.compared = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    def push_all(self, events: Iterable[Any]) -> Matches:
        return self._compared("push_all", list(events))

    def advance(self, t: int) -> Matches:
        return self._compared("advance", t)

    def close(self, *, until: int | None = None) -> Matches:
        return self._compared("close", until=until)

    def update(self, graph: str, add: Sequence[Any], remove: Sequence[Any]) -> Any:
        self._calls.append(("update", (graph, add, remove), {}))
        self._columns.update(graph, add, remove)
        return self._rows.update(graph, add, remove)

    def _compared(self, method: str, *given: Any, **options: Any) -> Matches:
        self._calls.append((method, given, options))
        in_rows: Matches = getattr(self._rows, method)(*given, **options)
        in_columns: Matches = getattr(self._columns, method)(*given, **options)
        self._columns.dead_letters.clear()
        if list(map(_name, in_rows)) != list(map(_name, in_columns)):
            raise Failure(_difference(in_rows, in_columns) + self._where())
        self.compared += len(in_rows)
        return in_rows

    def _where(self) -> str:
        """The first node whose solutions differ."""
        rows, columns = self._make("rows", True), self._make("columns", True)
        nodes = dict(rows.rules.nodes)
        for method, given, options in self._calls:
            if method == "update":
                rows.update(*given)
                columns.update(*given)
                continue
            answers = [getattr(engine, method)(*given, **options) for engine in (rows, columns)]
            there, here = (Counter(_solution(match) for match in answer if match.query in nodes) for answer in answers)
            differing = {solution[:2] for solution in (there - here) + (here - there)}
            if differing:
                end = min(end for end, _ in differing)
                node = next(name for name in nodes if (end, name) in differing)
                title = _title(explain(rows.rules, self._prefixes), node)
                return f"; the first node that differs is {title}, at {rows.render(end)}"
        return "; no node differs, so look at how the query reports: its order, its LIMIT, its policy"


def _name(match: Match) -> tuple[str, str, bool]:
    return match.query, match.id, match.retracted


def _solution(match: Match) -> tuple[int, str, int, tuple[str, ...]]:
    return match.end_us or 0, match.query, match.start_us or 0, match.row


def _difference(in_rows: Iterable[Match], in_columns: Iterable[Match]) -> str:
    rows, columns = ({_name(match): match for match in matches} for matches in (in_rows, in_columns))
    said = []
    for where, own, other in (("rows", rows, columns), ("columns", columns, rows)):
        only = [repr(match) for name, match in own.items() if name not in other]
        if only:
            more = f" and {len(only) - _SHOWN:,} more" if len(only) > _SHOWN else ""
            said.append(f"only {where} give {', '.join(only[:_SHOWN])}{more}")
    return "rows and columns differ: " + ("; ".join(said) or "they give the same matches in another order")


def _title(explanation: Explanation, node: str) -> str:
    """What a node does, in the words of the first query that uses it."""
    query = explanation.used[node][0]
    (output,) = (output for output in explanation.rules.outputs if output.query == query)
    steps = [explanation.plan(output)]
    for step in steps:
        if step is not None and step.node == explanation.names[node]:
            return f"{step.node} {step.title}"
        steps += step.parts if step is not None else ()
    return explanation.names[node]
