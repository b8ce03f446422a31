"""What a block of generated code sees: how the variables of its body goals are spelled in Python.

A ``Frame`` is made from the solution tuples at hand (``x``, ``y``) and grows with each BIND or look-up.  It writes the
solution tuple of the node that is being built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from etalis_rules import program as ir

from etalis_py.engine.expressions import Bindings, Emitter, Names
from etalis_py.engine.layout import Layout
from etalis_py.engine.values import SparqlError, Unbound, decode


def decode_or_none(term: str) -> object:
    """The value of a term, or None when it is unbound; whoever reads a None as a value gets an error."""
    if not term:
        return None
    try:
        return decode(term)
    except SparqlError:
        return None


def present(value: object) -> object:
    """A carried value, or the error that its variable is unbound."""
    if value is None:
        raise Unbound("the variable is unbound")
    return value


@dataclass(slots=True)
class Frame:
    """``terms`` and ``values`` map variables to source; ``certain`` are those that cannot be unbound."""

    names: Names
    terms: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    start: str = "x[1]"
    end: str = "t"
    seed: str = "x"
    provenance: str = ""

    def emitter(self) -> Emitter:
        mu = ", ".join(f"{name!r}: {term}" for name, term in self.terms.items())
        exists = f"(lambda pattern: look_back(pattern, {{{mu}}}, {self.end}, t))"
        return Emitter(self.names, Bindings(self.terms, self.values, self.start, self.end, "t", self.seed, exists))

    def read(self, ref: ir.Ref, layout: Layout, variable: str) -> None:
        """Take in the columns and values of a solution tuple that is in ``variable``."""
        for i, name in enumerate(ref.columns):
            self.terms[name] = f"{variable}[{2 + i}]"
            column = layout.head[i]
            if column in layout.values:
                value = f"{variable}[{layout.value(column)}]"
                self.values[name] = value if column in layout.certain else self._present(value)

    def _present(self, value: str) -> str:
        return f"{self.names.use('present', present)}({value})"

    def solution(self, layout: Layout, names: Mapping[str, str] | None = None) -> str:
        """Source of the solution tuple for a node with this layout (``names``: its head → the variables here)."""
        items = [self.end, self.start]
        here = (lambda column: column) if names is None else (lambda column: names.get(column, column))
        items.extend(self.terms.get(here(column), "''") for column in layout.head)
        for column in layout.values:
            name = here(column)
            if name in self.values:
                items.append(self.values[name].removeprefix("present"))
            elif name in self.terms:
                items.append(f"{self.names.use('decode_or_none', decode_or_none)}({self.terms[name]})")
            else:
                items.append("None")
        if self.provenance:
            items.append(self.provenance)
        return f"({', '.join(items)})"


def merge(
    names: Names, left: ir.Ref, right: ir.Ref, layouts: Mapping[str, Layout], certain: tuple[str, ...], x: str, y: str
) -> tuple[Frame, list[str]]:
    """The frame of two solutions, and the tests that they are compatible where the index does not see to it."""
    frame, other = Frame(names), Frame(names)
    frame.read(left, layouts[left.node], x)
    other.read(right, layouts[right.node], y)
    tests = []
    for name, term in other.terms.items():
        mine = frame.terms.get(name)
        if mine is None or name in certain:
            if mine is None:
                frame.terms[name] = term
            if name not in frame.values and name in other.values:
                frame.values[name] = other.values[name]
            continue
        tests.append(f"({mine} == {term} or not {mine} or not {term})")
        if name in frame.values and name in other.values:
            frame.values[name] = f"({frame.values[name]} if {mine} else {other.values[name]})"
        else:
            frame.values.pop(name, None)
        frame.terms[name] = f"({mine} or {term})"
    frame.seed = f"({x}, {y})"
    return frame, tests
