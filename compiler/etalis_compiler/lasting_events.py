"""Finds operators that look for the next or an absent event among derived events that have a duration.

The event that a rule derives has the interval of the solution that it is derived from.  Matches of a sliding window
overlap, so the event of one match is never the next after that of the match before it: what is next has to start after
the other has ended.  This is hardly what was meant.  A rule with AT END derives points in time instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from etalis_rules import program as ir
from etalis_rules.operators import compares_times, decides_for_good, lasts, passes_on, reads_stream, spanned

from .stratify import StreamReaders


class LastingSide(NamedTuple):
    """A node that decides what is next or absent, and the rule whose events have a duration on one of its sides."""

    node: str
    maker: str


def lasting_operands(rules: ir.Rules) -> Iterator[LastingSide]:
    """Each node that decides what is next or absent, with each rule that derives events with a duration for a side."""
    lasting = _LastingEvents(rules)
    for name, node in rules.nodes:
        if compares_times(node) and decides_for_good(node) and lasts(node):
            makers = dict.fromkeys(maker for ref in ir.refs(node) for maker in lasting.makers(ref.node))
            yield from (LastingSide(name, maker) for maker in makers)


class _LastingEvents:
    """Follows solutions down to the events that they are made of, and these to the rules that derive them."""

    def __init__(self, rules: ir.Rules) -> None:
        self.nodes: Mapping[str, ir.Node] = dict(rules.nodes)
        self.derive: dict[str, list[ir.Output]] = {}
        """For each reader of the stream, the rules that may derive what it reads."""
        readers = StreamReaders(self.nodes)
        for output in rules.outputs:
            for reader in readers.fed_by(output) if output.source is not None else ():
                self.derive.setdefault(reader, []).append(output)
        self.under: set[str] = set()
        """The nodes about which ``_last`` is being asked: recursive rules lead back to them."""

    def makers(self, name: str) -> Iterator[str]:
        """The rules that derive the single events that a node is made of, if these have a duration."""
        node = self.nodes[name]
        if reads_stream(node):
            for output in self.derive.get(name, ()):
                assert output.source is not None
                if self._last(output.source.node):
                    yield output.query
        elif passes_on(node):
            for ref in ir.refs(node):
                yield from self.makers(ref.node)

    def _last(self, name: str) -> bool:
        """Whether solutions of a node have a duration though every event of the input is a point in time.

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
