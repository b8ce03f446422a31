"""Generated code that passes derived triples on: singly to the leaves, and as whole events to EVENT."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TypeVar

from etalis_compiler.stratify import feeds
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.feeding import feed
from etalis_py.executors.rows.generate.frames import Frame
from etalis_py.executors.rows.generate.provenance import Provenance
from etalis_py.executors.rows.generate.records import feed_event
from etalis_py.executors.rows.generate.runtime_objects import OfOutput
from etalis_py.executors.rows.generate.writer import Writer

Reader = TypeVar("Reader", ir.Leaf, ir.Record)


@dataclass(frozen=True, slots=True)
class Derivation:
    """A CONSTRUCT rule with the leaves and the EVENTs (``records``) that read its triples.

    ``labels`` are the blank nodes that it makes anew; ``remembers``: some rule looks back at single occurrences.
    ``of_schema``: the rule is of the background's schema; what follows from one event is no event of its own.
    """

    name: str
    number: int
    output: ir.Output
    leaves: Mapping[str, ir.Leaf]
    records: Mapping[str, ir.Record]
    labels: tuple[str, ...]
    remembers: bool
    of_schema: bool


def derive(w: Writer, code: Code, rule: Derivation, rows: str, later: Mapping[str, str] | None) -> None:
    """Write the code that gives each derived triple to the leaves that read it.

    A triple counts once per instant and interval; for leaves of one STREAM, once in that stream.
    """
    output = rule.output
    assert output.source is not None
    frame = Frame(code.names)
    frame.read(output.source, code.layouts[output.source.node], "x")
    with w.block(f"for x in {rows}:"):
        if rule.labels:
            w(f"fresh = {code.need(f'fresh{rule.number}', OfOutput(rule.number, 'fresh'))}(x)")
            for i, label in enumerate(rule.labels):
                frame.terms[label] = f"fresh[{i}]"
        w("start = x[1]", f"stream = {output.stream!r}")
        if not code.is_late(output.source.node):
            _derive_from(w, code, rule, frame, later)
            return
        with w.block("if x[0] == t:"):
            _derive_from(w, code, rule, frame, later)
        # A solution that ended before this instant is an event of the past, which comes to late readers only.
        past = replace(rule, leaves=_late_of(rule.leaves), records=_late_of(rule.records))
        if past.leaves or past.records:
            with w.block("else:"):
                w("end = x[0]")
                _derive_from(w, code, past, frame, later, "end")


def _late_of(readers: Mapping[str, Reader]) -> dict[str, Reader]:
    """The readers for which rules may derive events of the past."""
    return {name: reader for name, reader in readers.items() if reader.late}


def _derive_from(
    w: Writer, code: Code, rule: Derivation, frame: Frame, later: Mapping[str, str] | None, end: str = "t"
) -> None:
    """Write the code for the solution at hand, which ends at ``end``."""
    output = rule.output
    ended = "" if end == "t" else f", {end}"
    seen = code.filled("seen")
    if rule.records:
        w("triples = {}")
    for template in output.template:
        places = (template.subject, template.predicate, template.object)
        w(f"s, p, o = {', '.join(_written(n, frame) for n in places)}")
        tests = [letter for letter, n in zip("spo", places, strict=True) if alg.variable_of(n)]
        if alg.variable_of(template.subject):
            tests.append("""s[:1] != '"' and s[:2] != '<<'""")
        if alg.variable_of(template.predicate):
            tests.append("p[:1] == '<'")
        if rule.records:
            with w.block(f"if {' and '.join(tests)}:") if tests else nullcontext():
                w("triples[s, p, o] = None")
        constant = alg.constant_of(template.predicate) or None
        targets = {n: leaf for n, leaf in rule.leaves.items() if feeds(template, output.stream, leaf)}
        because = f"{code.names.use('Because', Provenance)}({rule.name!r}, (x[-1],))"
        anywhere = {n: leaf for n, leaf in targets.items() if not leaf.stream}
        ways = [(seen, f"(s, p, o, start{ended})", anywhere)]
        if in_stream := {n: leaf for n, leaf in targets.items() if leaf.stream}:
            ways.append((code.filled("seen in stream"), f"(s, p, o, start, stream{ended})", in_stream))
        for known, occurrence, leaves in ways:
            with w.block(f"if {' and '.join([f'{occurrence} not in {known}', *tests])}:"):
                w(f"{known}.add({occurrence})")
                if rule.remembers:
                    w(f"{code.of_runtime('remember')}(s, p, o, start, {end}, stream)")
                feed(w, code, leaves, because, constant, later or {}, end)
    if rule.records:
        _derive_event(w, code, rule, later, end)


def _derive_event(w: Writer, code: Code, rule: Derivation, later: Mapping[str, str] | None, end: str) -> None:
    """Write the code that makes one event of all triples of a solution, unless the instant already has an equal one."""
    known = code.filled("whole")
    w("graph = ''", f"event = (start, frozenset(triples), stream, graph, {end})")
    tests = [f"triples and event not in {known}"]
    if rule.of_schema:
        tests.append(f"not {code.of_runtime('follows_from_one')}(event, {known})")
    with w.block(f"if {' and '.join(tests)}:"):
        w(f"{known}.add(event)", "triples = (*triples,)")
        feed_event(w, code, rule.records, later or {}, code.provenance(rule.name, "x[-1]"), end)


def _written(node: alg.Var | alg.Const, frame: Frame) -> str:
    return alg.spelled(node, lambda name: frame.terms.get(name, "''"), repr)
