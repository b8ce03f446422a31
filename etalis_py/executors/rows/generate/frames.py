"""Frames: the variables that a block of generated code sees, and how they are spelled in Python.

A ``Frame`` is made from the solution tuples at hand (``x``, ``y``) and grows with each BIND or look-up.  It writes the
solution tuple of the node that is being built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from etalis_rules import program as ir

from etalis_py.executors.rows.generate.layout import Layout
from etalis_py.values import Unbound, decode_or_none
from etalis_py.values.expressions import Bindings, Emitter, GlobalNames

Named = str | tuple[str, ...]
"""How generated code spells a solution: the name of a variable, or the names of the items if each has its own."""


def item(solution: Named, place: int) -> str:
    """Source of an item of a solution."""
    return f"{solution}[{place}]" if isinstance(solution, str) else solution[place]


def present(value: object) -> object:
    """The decoded value that a solution carries; raises an error if there is none, since its variable is unbound."""
    if value is None:
        raise Unbound("the variable is unbound")
    return value


@dataclass(slots=True)
class Frame:
    """The source by which a block reads its variables: ``terms`` for their terms, ``values`` for decoded values.

    An ``unsure`` variable may be unbound; its value is then None.  Carrying None on is no error, but calculating with
    it is.
    """

    names: GlobalNames
    terms: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    start: str = "x[1]"
    end: str = "t"
    provenance: str = ""

    def emitter(self, now: str = "t") -> Emitter:
        """What writes expressions over this solution; ``now`` is the source of the instant of NOW()."""
        mu = ", ".join(f"{name!r}: {term}" for name, term in self.terms.items())
        exists = f"(lambda pattern: look_back(pattern, {{{mu}}}, {self.end}, {now}))"
        values = {name: self.value(name) for name in self.values}
        return Emitter(self.names, Bindings(self.terms, values, self.start, self.end, now, exists))

    def value(self, name: str) -> str:
        """Source of a value to calculate with: an error if the variable is unbound."""
        carried = self.values[name]
        return f"{self.names.use('present', present)}({carried})" if name in self.unsure else carried

    def set_value(self, name: str, source: str, *, unsure: bool = False) -> None:
        """Set the source by which the value of a variable is read from here on."""
        self.values[name] = source
        (self.unsure.add if unsure else self.unsure.discard)(name)

    def read(self, ref: ir.Ref, layout: Layout, solution: Named) -> None:
        """Add the columns and values of a solution tuple."""
        for i, name in enumerate(ref.columns):
            self.terms[name] = item(solution, 2 + i)
            column = layout.head[i]
            if column in layout.values:
                self.set_value(name, item(solution, layout.value(column)), unsure=column not in layout.certain)

    def solution(self, layout: Layout, names: Mapping[str, str] | None = None) -> str:
        """Source of the solution tuple for a node with this layout (``names``: its head → the variables here)."""
        return f"({', '.join(self.items(layout, names))})"

    def items(self, layout: Layout, names: Mapping[str, str] | None = None) -> list[str]:
        """Source of each item of that tuple."""
        items = [self.end, self.start]
        here = (lambda column: column) if names is None else (lambda column: names.get(column, column))
        items.extend(self.terms.get(here(column), "''") for column in layout.head)
        for column in layout.values:
            name = here(column)
            if name in self.values:
                items.append(self.values[name])
            elif name in self.terms:
                items.append(f"{self.names.use('decode_or_none', decode_or_none)}({self.terms[name]})")
            else:
                items.append("None")
        if self.provenance:
            items.append(self.provenance)
        return items


def merge(
    names: GlobalNames,
    left: ir.Ref,
    right: ir.Ref,
    layouts: Mapping[str, Layout],
    certain: tuple[str, ...],
    x: Named,
    y: Named,
) -> tuple[Frame, list[str]]:
    """The frame of two solutions, and the tests that they are compatible as far as the index does not ensure it."""
    frame, other = Frame(names), Frame(names)
    frame.read(left, layouts[left.node], x)
    other.read(right, layouts[right.node], y)
    tests = []
    for name, term in other.terms.items():
        own = frame.terms.get(name)
        if own is None or name in certain:
            if own is None:
                frame.terms[name] = term
            if name not in frame.values and name in other.values:
                frame.set_value(name, other.values[name], unsure=name in other.unsure)
            continue
        tests.append(f"({own} == {term} or not {own} or not {term})")
        if name in frame.values and name in other.values:
            either = f"({frame.values[name]} if {own} else {other.values[name]})"
            frame.set_value(name, either, unsure=name in frame.unsure and name in other.unsure)
        else:
            frame.values.pop(name, None)
        frame.terms[name] = f"({own} or {term})"
    return frame, tests
