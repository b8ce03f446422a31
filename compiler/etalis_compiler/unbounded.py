"""The state that a program keeps for ever.

A goal waits for its partner; with a bound on the duration of the joint solution it expires, without one it never does.
Operators that test for absence look at the whole past; a deadline keeps the solutions that wait for it.  NEXT keeps one
generation of goals for each key, REPEAT the runs that can go on.  Nothing is kept for EQUALS and FINISHES: both sides
end at the same instant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from etalis_rules import program as ir
from etalis_rules.relations import LEFT_LAST, RIGHT_LAST, TOGETHER, Op


@dataclass(frozen=True, slots=True)
class Kept:
    """``node`` (or ``query``, for DESCRIBE) keeps ``what`` without end; ``hint`` says how to bound it."""

    node: str
    what: str
    hint: str
    query: str = ""


_WITHIN = "bound the group, {…} WITHIN PT1H, or compare getDURATION() with a constant"
_ABSENCE = "absence is absence in all the past: no WITHIN shortens it; expect memory to grow with what must be absent"


_KEYS = "this grows with the keys, not with the stream; take BY variables of which there are not ever more"


def unbounded(rules: ir.Rules, names: Mapping[str, str]) -> tuple[Kept, ...]:
    """All state that grows with the stream, in the order of the nodes."""
    kept_forever = [kept for name, node in rules.nodes for kept in _kept(name, node, names)]
    for output in rules.outputs:
        if output.form == "describe":
            kept_forever.append(
                Kept("", "every triple of the stream", "DESCRIBE needs them all: use CONSTRUCT", output.query)
            )
    return tuple(kept_forever)


def _kept(name: str, node: ir.Node, names: Mapping[str, str]) -> Iterator[Kept]:
    if isinstance(node, ir.Join | ir.Absence) and node.leaves:
        yield Kept(name, _history(node.leaves, names), _ABSENCE)
    match node:
        case ir.Join(op=Op.NEXT) if node.bound is None:
            of = f" for each {_variables(node.certain)}" if node.certain else ""
            yield Kept(name, f"the solutions of {names[node.left.node]} that wait for their next one{of}", _WITHIN)
        case ir.Absence() if node.deadline is None and node.bound is None:
            yield Kept(name, _every(names[node.absent.node]), _ABSENCE if node.right is None else _WITHIN)
            if node.right is not None:
                yield Kept(name, _every(names[node.left.node]), _WITHIN)
        case ir.Run():
            what = "a run" if node.longest and node.most is None else "the runs that may go on"
            yield Kept(name, f"{what} for every {_variables(node.keys) or 'stream'} there has been", _KEYS)
        case ir.Join() if node.bound is None and node.op not in TOGETHER:
            sides = [node.left] if node.op in RIGHT_LAST else [node.left, node.right]
            yield Kept(name, " and ".join(_every(names[ref.node]) for ref in _distinct(sides)), _WITHIN)
        case ir.Outer():
            if node.right is not None and node.op not in TOGETHER and node.bound is None:
                yield Kept(name, _every(names[node.right.node]), _WITHIN if node.op in LEFT_LAST else _ABSENCE)
            if node.leaves:
                yield Kept(name, _history(node.leaves, names), _ABSENCE)
        case ir.Recall():
            yield Kept(name, _history(node.leaves, names), _ABSENCE)
        case ir.Closure() if node.bound is None:
            yield Kept(name, f"every edge {names[node.edge.node]} and every pair they connect", _WITHIN)
        case ir.Group() if node.window is None or node.window.events:
            yield from _groups(name, node)
        case ir.Join() | ir.Absence() | ir.Closure() | ir.Group():
            pass  # it has a window
        case ir.Leaf() | ir.Record() | ir.Map() | ir.Union() | ir.Slice():
            pass  # it keeps nothing
        case _:
            assert_never(node)


def _groups(name: str, node: ir.Group) -> Iterator[Kept]:
    hint = "write a sliding window after the WHERE clause: WITHIN PT1H"
    listing = [a for a in node.aggregates if a.distinct or a.name in ("GROUP_CONCAT", "MIN", "MAX", "SAMPLE")]
    if node.window is None and any(a.distinct or a.name == "GROUP_CONCAT" for a in listing):
        yield Kept(name, "every value it aggregates", hint)
    elif node.keys:
        yield Kept(name, "a row for every group there has been", hint)


def _variables(names: tuple[str, ...]) -> str:
    return ", ".join("X" + n[1:] if n[:1] == "~" else "?" + n for n in names)


def _distinct(refs: list[ir.Ref]) -> list[ir.Ref]:
    return list({ref.node: ref for ref in refs}.values())


def _every(name: str) -> str:
    return f"every solution of {name}"


def _history(leaves: tuple[str, ...], names: Mapping[str, str]) -> str:
    return f"every occurrence of {', '.join(names[leaf] for leaf in leaves)}"
