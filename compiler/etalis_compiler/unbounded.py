"""Lists the state that a program keeps for ever.

A goal waits for its partner; with a bound on the duration of the joint solution it expires, without one it never does.
``etalis_rules.operators`` defines for each input of a node what is kept of it; this module puts that into words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from etalis_rules import program as ir
from etalis_rules.clock import is_decided_by_key, is_made_of_start, shown_within
from etalis_rules.growth import Forever, Growth
from etalis_rules.operators import Input, inputs
from etalis_rules.roles import Role


@dataclass(frozen=True, slots=True)
class UnboundedState:
    """``node`` (or ``query``, for DESCRIBE) keeps ``what`` without end; ``hint`` says how to bound it.

    ``brief`` is ``what`` without the names of nodes; it is kept for each value of ``keys``, columns of the node.
    """

    node: str
    what: str
    hint: str
    query: str = ""
    brief: str = ""
    keys: tuple[str, ...] = ()

    def told(self, names: Mapping[str, str]) -> str:
        """``brief``, with the names that a query has for the columns of the node."""
        keys = [f"?{names[key]}" for key in self.keys if key in names]
        return f"{self.brief} for each {' and '.join(keys)}" if keys else self.brief


_ALL = "every triple of the stream"
_HINTS = {
    Growth.LASTING: "bound the group, {…} WITHIN PT1H, or compare getDURATION() with a constant",
    Growth.PAST: "absence is absence in all the past: no WITHIN shortens it; expect memory to grow with what must be "
    "absent",
    Growth.SINCE_START: "absence since START is absence in all the past, and WITHIN PT1H would ask for the first hour "
    "alone; expect memory to grow with what must be absent",
    Growth.KEYS: "this grows with the keys, not with the stream; use BY variables with a bounded number of values",
    Growth.GROUPS: "write a sliding window after the WHERE clause: WITHIN PT1H",
}


def unbounded(rules: ir.Rules, names: Mapping[str, str]) -> tuple[UnboundedState, ...]:
    """All state that grows with the stream, in the order of the nodes."""
    nodes = dict(rules.nodes)
    kept_forever = [kept for name in nodes for kept in _kept(name, nodes, names)]
    for output in rules.outputs:
        if output.form == "describe":
            kept_forever.append(UnboundedState("", _ALL, "DESCRIBE needs them all: use CONSTRUCT", output.query, _ALL))
    return tuple(kept_forever)


def _kept(name: str, nodes: Mapping[str, ir.Node], names: Mapping[str, str]) -> Iterator[UnboundedState]:
    """The unbounded state of a node, one entry for each role of its inputs; the sides of a join share one, the last.

    There is one START, so keeping it for ever takes no room.
    """
    grown = (part for part in _inputs(name, nodes) if not is_made_of_start(nodes[part.ref.node], nodes))
    below = sorted(grown, key=lambda part: part.role is Role.SIDE)
    for _, group in groupby(below, key=lambda part: part.role):
        parts = list(group)
        forever = next((part.forever for part in parts if part.forever is not None), None)
        if forever is not None:
            what = _what(forever, [part for part in parts if part.forever is not None], names)
            brief = forever.brief or (forever.what if "{}" not in forever.what else what)
            yield UnboundedState(name, what, _HINTS[forever.growth], brief=brief, keys=forever.keys)


def _inputs(name: str, nodes: Mapping[str, ir.Node]) -> Iterator[Input]:
    """The inputs of a node, as the nodes around it have them.

    A WITHIN may leave of an optional side only the first solution of each key; after START a NOT alone is kept.
    """
    node = nodes[name]
    parts = inputs(node)
    after_start = any(is_made_of_start(nodes[part.ref.node], nodes) for part in parts[:1])
    first: Forever | None = None
    if is_decided_by_key(node) and shown_within(name, nodes) is not None:
        first = Forever("the first solution of {}", Growth.PAST, keys=node.certain)
    for part in parts:
        if part.role is Role.OPTIONAL and first is not None:
            yield replace(part, forever=first)
        elif part.role is Role.ABSENT and part.forever is not None and after_start:
            yield replace(part, forever=Forever(growth=Growth.SINCE_START, brief="every solution of the NOT"))
        else:
            yield part


def _what(forever: Forever, parts: list[Input], names: Mapping[str, str]) -> str:
    of = list(dict.fromkeys(names[part.ref.node] for part in parts))
    keys = ", ".join("X" + n[1:] if n[:1] == "~" else "?" + n for n in forever.keys)
    if forever.growth is Growth.KEYS:
        return f"{forever.what} for every {keys or 'stream'}"
    if parts[0].role is Role.PAST:
        return forever.what.format(", ".join(of))
    told = " and ".join(map(forever.what.format, of))
    return f"{told} for each {keys}" if keys else told
