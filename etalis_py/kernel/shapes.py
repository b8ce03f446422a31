"""The shapes of matches: how the rows of each query are read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from etalis_rules import program as ir
from etalis_rules.spelling import PREFIXES

from etalis_py.events import Triple
from etalis_py.kernel.batch import Row
from etalis_py.kernel.match_id import identity_of


@dataclass(frozen=True, slots=True)
class Shape:
    """The description by which the rows of a query are read: its variables and their places, its template, its times.

    ``triples`` makes the triples of a CONSTRUCT or DESCRIBE from a row; ``explain`` makes the explanation of a row.
    """

    output: ir.Output
    variables: tuple[str, ...]
    places: tuple[int, ...]
    render: Callable[[int], int | str]
    triples: Callable[[Row], tuple[Triple, ...]] | None = None
    explain: Callable[[Row], Any] | None = None
    adjacent: bool = True
    """Whether equal rows of a report are neighbours."""
    once: bool = False
    """Whether only the first answer is reported (ASK)."""
    hidden: bool = False
    """Whether the query only serves other queries, so that its rows are not matches."""
    retracted: bool = False
    """Whether its rows take back earlier matches."""
    prefixes: Mapping[str, str] = field(default_factory=lambda: PREFIXES)
    """The prefixes for showing terms."""
    identify: Callable[[Row, int], str] = field(init=False, compare=False, repr=False)
    """The id of a match, from its row and its ordinal."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "identify", identity_of(self))

    @property
    def query(self) -> str:
        return self.output.query


class LazyShapes(Sequence[Shape]):
    """Shapes by their numbers, most of them made on demand; only those in ``ordinary`` exist beforehand.

    Shapes made on demand are never ``hidden``.
    """

    ordinary: Mapping[int, Shape]
    once: dict[int, str]
    """Names of queries that answer once (ASK), by their numbers; at least all that have reported are there."""

    @property
    @abstractmethod
    def queries(self) -> frozenset[str]:
        """The names of all queries."""
