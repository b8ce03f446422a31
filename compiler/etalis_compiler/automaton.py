"""The loop that runs the parse tables over the tokens.

It replaces Lark's own loop for three reasons: it keeps the span and the depth of every value, which the AST and the
nesting limit need; it takes a word as a keyword or as a name, whichever fits its place; and it starts without importing
Lark.  Time is linear in the number of tokens; nothing is recursive.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .building.long_chains import LongChains
from .lexing import Token, readings
from .tables import Rule, Tables

_AROUND = 16
"""The depth that is left for what stands around a chain."""


class Unexpected(Exception):
    """A token that does not fit; ``accepted`` are the types that would, ``before`` those in place of ``last``."""

    def __init__(self, token: Token, accepted: set[str], last: Token | None, before: set[str]):
        super().__init__(token.text)
        self.token, self.accepted, self.last, self.before = token, accepted, last, before


class TooDeep(Exception):
    """The nesting limit was reached at the token."""

    def __init__(self, token: Token):
        super().__init__(token.text)
        self.token = token


def run(tables: Tables, stream: Iterable[Token], builder: object, end: int, max_depth: int) -> Any:
    """Run the automaton over the tokens and return what the builder makes of the start rule.

    The builder's methods, which the rules name, get the children and the span; depth counts the builder's calls above a
    token.  ``end`` is the length of the text.
    """
    states, rules = tables.states, tables.rules
    stack = [tables.start]
    values: list[Any] = []
    starts: list[int] = []
    ends: list[int] = []
    depths: list[int] = []
    chains = LongChains()
    last: Token | None = None
    before: int = tables.start

    def feed(token: Token, kind: str) -> None:
        while True:
            row = states[stack[-1]]
            action = row.get(kind)
            if action is None:
                raise Unexpected(token, accepted(states, rules, stack), last, accepted(states, rules, [before]))
            if action >= 0:
                stack.append(action)
                values.append(token)
                starts.append(token.start)
                ends.append(token.end)
                depths.append(0)
                return
            rule = rules[~action]
            size = rule.size
            if size:
                children, first, stop = values[-size:], starts[-size], ends[-1]
                depth = max(depths[-size:])
                del stack[-size:], values[-size:], starts[-size:], ends[-size:], depths[-size:]
            else:
                children, first, stop, depth = [], token.start, token.start, 0
            if rule.handler == "":
                value = children[rule.template[0] or 0]
            else:
                value = _arrange(children, rule.template)
                if rule.handler != "_":
                    depth += 1
                    value = getattr(builder, rule.handler)(value, first, stop)
                    if depth > max_depth - _AROUND:
                        value, depth = chains.shallower(value) or (value, depth)
                    if depth > max_depth:
                        raise TooDeep(token)
            stack.append(states[stack[-1]][rule.origin])
            values.append(value)
            starts.append(first)
            ends.append(stop)
            depths.append(depth)
            if kind == "$END" and stack[-1] == tables.end:
                return

    for token in stream:
        kind = token.type
        row = states[stack[-1]]
        if kind not in row:
            kind = next((reading for reading in readings(token) if reading in row), kind)
        here = stack[-1]
        feed(token, kind)
        last, before = token, here
    feed(Token("$END", "", end, end), "$END")
    return values[-1]


def _arrange(children: list[Any], template: tuple[int | None, ...]) -> list[Any]:
    arranged: list[Any] = []
    for item in template:
        if item is None:
            arranged.append(None)
        elif item >= 0:
            arranged.append(children[item])
        elif arranged:
            arranged += children[~item]
        else:
            arranged = children[~item]  # the usual left-recursive list grows in place
    return arranged


def accepted(states: tuple[dict[str, int], ...], rules: tuple[Rule, ...], stack: list[int]) -> set[str]:
    """The token types that can come next: those for which the automaton ends in a shift.

    A row of an LALR(1) table also lists types that would only be rejected after some reductions.
    """
    good: set[str] = set()
    for kind, first in states[stack[-1]].items():
        if kind.isupper():  # the names of rules are in lower case
            trial, action = list(stack), first
            while action < 0:
                rule = rules[~action]
                if rule.size >= len(trial):
                    break  # only part of the stack was given: trust the row
                del trial[len(trial) - rule.size :]
                trial.append(states[trial[-1]][rule.origin])
                following = states[trial[-1]].get(kind)
                if following is None:
                    break
                action = following
            else:
                good.add(kind)
                continue
            if rule.size >= len(trial):
                good.add(kind)
    return good
