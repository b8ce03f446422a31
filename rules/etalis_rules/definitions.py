"""Nodes and queries as definition lines, which are complete.

    g3(X0, X2) := join(seq, g1(X0, X1), g2(X0, X2), [X0], bound=below(P30D))

The names and the order of the parts are those of the classes in ``program`` and ``algebra``: parts without a default
are given by position, the others by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any

from . import algebra as alg
from . import program as ir
from .spelling import Spelling, bound_text
from .traversal import name_fields

INFIX = frozenset({"+", "-", "*", "/", "<", "<=", ">", ">=", "=", "!=", "&&", "||"})
NOT = "not"  # the spelling of the operator !


def is_infix(e: alg.Apply) -> bool:
    return e.op in INFIX and len(e.args) == 2


def is_call(e: alg.Apply) -> bool:
    """Whether it can be written ``NAME(…)`` or ``<iri>(…)``."""
    word = e.op.replace("_", "").isalnum() and e.op.isupper()
    return word or alg.is_function_iri(e.op) or e.op in ("!", "neg", "pos")


def required(cls: type) -> tuple[Field[Any], ...]:
    return tuple(f for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING)


@dataclass(frozen=True, slots=True)
class Definitions:
    """``names`` are the short names of the nodes."""

    spelling: Spelling
    names: Mapping[str, str]

    def node(self, node: ir.Node) -> str:
        return self._call(node, skip="head")

    def output(self, output: ir.Output) -> str:
        return self._call(output, skip="query")

    def ref(self, ref: ir.Ref) -> str:
        return f"{self.names[ref.node]}({self.variables(ref.columns)})"

    def variables(self, names: tuple[str, ...]) -> str:
        return ", ".join(map(self.spelling.variable, names))

    def _call(self, value: Any, skip: str = "") -> str:
        positional = required(type(value))
        parts = [self._part(value, f.name) for f in positional if f.name != skip]
        for f in fields(value):
            if f not in positional and getattr(value, f.name) != f.default:
                parts.append(f"{f.name}={self._part(value, f.name)}")
        return f"{type(value).__name__.lower()}({', '.join(parts)})"

    def _part(self, value: Any, name: str) -> str:
        part = getattr(value, name)
        if name in name_fields(value.__class__):
            return self._named(part)
        if name == "leaves":
            return f"[{', '.join(self.names[leaf] for leaf in part)}]"
        return self.value(part)

    def _named(self, part: Any) -> str:
        """Names of variables; a pair is a name with its expression."""
        if isinstance(part, str):
            return self.spelling.variable(part) if part else "none"
        items = (
            self._named(i) if isinstance(i, str) else f"[{self.spelling.variable(i[0])}, {self.value(i[1])}]"
            for i in part
        )
        return f"[{', '.join(items)}]"

    def value(self, value: Any) -> str:
        match value:
            case None:
                return "none"
            case bool():
                return "true" if value else "false"
            case int():
                return str(value)
            case str():
                return self.spelling.text(value)
            case tuple():
                return f"[{', '.join(map(self.value, value))}]"
            case ir.Ref():
                return self.ref(value)
            case ir.NewTerm(parts=parts):
                return f"<<( {' '.join(map(self.value, parts))} )>>"
            case alg.Var(name):
                return self.spelling.variable(name)
            case alg.Const(term):
                return self.spelling.term(term)
            case ir.Any():
                return "_"
            case alg.Bound():
                return bound_text(value)
            case alg.Triple(s, p, o):
                return f"{self.value(s)} {self.value(p)} {self.value(o)}"
            case alg.Apply(op, args) if is_infix(value):
                return f"({self.value(args[0])} {op} {self.value(args[1])})"
            case alg.Apply(op, args) if is_call(value):
                return f"{NOT if op == '!' else self.spelling.text(op)}({', '.join(map(self.value, args))})"
        return self._call(value)
