"""Finds rules whose derived events last a while where the next or the absent one is looked for.

The event that a rule derives has the interval of the solution.  Matches of a sliding window overlap, so of such events
neighbours are never next to each other: the next one starts after the end.  With AT END they are points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from etalis_rules import program as ir
from etalis_rules.operators import compares_times, decides_for_good, lasts, passes_on, reads_stream, spanned

from .stratify import feeds


class Lasting(NamedTuple):
    """A node that decides what is next or absent, and the query whose events last a while on one of its sides."""

    node: str
    maker: str


def lasting_operands(rules: ir.Rules) -> Iterator[Lasting]:
    """The nodes that go by what comes between, with events on a side that a rule derives from matches that last."""
    hulls = _Hulls(rules)
    for name, node in rules.nodes:
        if compares_times(node) and decides_for_good(node) and lasts(node):
            makers = dict.fromkeys(maker for ref in ir.refs(node) for maker in hulls.makers(ref.node))
            yield from (Lasting(name, maker) for maker in makers)


class _Hulls:
    def __init__(self, rules: ir.Rules) -> None:
        self.nodes: Mapping[str, ir.Node] = dict(rules.nodes)
        self.outputs = [o for o in rules.outputs if o.form == "construct" and o.source is not None]
        self.under: set[str] = set()

    def makers(self, name: str) -> Iterator[str]:
        """The queries that derive the single events that a node is made of, if these last a while."""
        node = self.nodes[name]
        if reads_stream(node):
            for output in self.outputs:
                assert output.source is not None
                if any(feeds(t, output.stream, node) for t in output.template) and self._last(output.source.node):
                    yield output.query
        elif passes_on(node):
            for ref in ir.refs(node):
                yield from self.makers(ref.node)

    def _last(self, name: str) -> bool:
        """Whether solutions of a node last a while, if events of the input are points.

        The triples of a block may be those of one event, so a plain join does not count.
        """
        if name in self.under:  # it reads what it derives: the other ways to its solutions decide
            return False
        self.under.add(name)
        try:
            return self._made_of(self.nodes[name], name)
        finally:
            self.under.discard(name)

    def _made_of(self, node: ir.Node, name: str) -> bool:
        if reads_stream(node):
            return next(self.makers(name), None) is not None
        return lasts(node) or any(self._last(ref.node) for ref in spanned(node))
