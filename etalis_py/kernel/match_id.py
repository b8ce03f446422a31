"""The id of a match: a hash of its query's name or text, its terms, its interval and so on.

Equal runs give equal ids.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

from etalis_rules import program as ir

from etalis_py.values.generated import CompiledText

if TYPE_CHECKING:
    from etalis_py.kernel.batch import Row


class Identified(Protocol):
    """What the ids of a query's matches depend on: its identity and form, and where its variables are in a row."""

    @property
    def output(self) -> ir.Output: ...

    @property
    def variables(self) -> tuple[str, ...]: ...

    @property
    def places(self) -> tuple[int, ...]: ...


def beginning(shape: Identified) -> bytes:
    """The first two lines of the text whose hash is an id."""
    names = [v for v, i in zip(shape.variables, shape.places, strict=True) if i > 0]
    return f"{shape.output.identity or shape.output.query}\n{' '.join(names)}\n".encode()


def identity_of(shape: Identified) -> Callable[[Row, int], str]:
    """A hash of query, variables, terms, interval and ordinal, one per line; no name and no term has a line break."""
    places = (2,) if shape.output.form == "ask" else tuple(i for i in shape.places if i > 0)
    begun = blake2b(beginning(shape), digest_size=16)  # computed once, and copied for every match
    terms = "".join(f"{{row[{i}]}}\\n" for i in places)
    text = f"""
def identify(row, n):
    begun = copy()
    begun.update(f'{terms}{{row[1]}} {{row[0]}} {{n}}'.encode())
    return begun.hexdigest()
"""
    scope: dict[str, Any] = {"copy": begun.copy}
    _compiled(text).run(scope)
    return scope["identify"]  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def _compiled(text: str) -> CompiledText:
    """The compiled code of ``text``; queries with the same number of variables, perhaps thousands, share it."""
    return CompiledText(text, "identity")
