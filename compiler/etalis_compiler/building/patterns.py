"""Triples, paths and graph patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from etalis_rules.terms import RDF, RDF_TYPE

from ..ast import (
    TIGHT,
    Bind,
    Combined,
    Current,
    EventDeclaration,
    EventGroup,
    EventName,
    EventSequence,
    EventUnary,
    Expression,
    Filter,
    GraphGroup,
    Group,
    Match,
    Minus,
    Node,
    Operator,
    Optional,
    Path,
    PathAlternative,
    PathInverse,
    PathIri,
    PathNegated,
    PathRepeat,
    PathSequence,
    Repeat,
    Service,
    Span,
    Start,
    StreamGroup,
    Term,
    TriplePattern,
    Triples,
    TripleTime,
    Values,
    Var,
    WindowGroup,
    Within,
)
from .sequences import SequenceBuilder

Verb = Var | Term | Path
POLICIES = ("unrestricted", "chronological", "recent")
_TIMESTAMP = "<http://larkc.eu/csparql/sparql/jena/ext#timestamp>"
_SEQUENCES = {"n": "naive", "c": "chronological", "r": "recent", "unrestricted": ""}


@dataclass(slots=True)
class Described:
    """A node written with its own triples: ``[ :p :q ]`` or a collection."""

    node: Node
    patterns: list[TriplePattern]


@dataclass(slots=True)
class Reified(Described):
    """A node that names a triple (a reifier): ``<< :a :b :c ~ :node >>``."""


@dataclass(slots=True)
class Reifier:
    """``~ :node``; None stands for a fresh node."""

    node: Node | None
    span: Span


@dataclass(slots=True)
class Annotated:
    """An object with the annotations of its triple: reifiers and blocks ``{| … |}`` of properties, as written."""

    object: Any
    annotations: list[Reifier | list[tuple[Verb, list[Any]]]]


class PatternBuilder(SequenceBuilder):
    # --- triples ---

    def triples(self, args: list[Any], start: int, end: int) -> Triples:
        return Triples(tuple(p for patterns in args for p in patterns), span=Span(start, end))

    def subject_triples(self, args: list[Any], start: int, end: int) -> list[TriplePattern]:
        subject, properties = args
        if isinstance(subject, Described):
            return subject.patterns + self._about(subject.node, properties or [], start)
        return self._about(subject, properties, start)

    def _about(self, subject: Node, properties: list[tuple[Verb, list[Any]]], start: int) -> list[TriplePattern]:
        patterns: list[TriplePattern] = []
        for verb, objects in properties:
            for written in objects:
                obj = written.object if isinstance(written, Annotated) else written
                node = obj.node if isinstance(obj, Described) else obj
                pattern = TriplePattern(subject, verb, node, span=Span(start, node.span.end))
                patterns.append(pattern)
                if isinstance(obj, Described):
                    patterns += obj.patterns
                if isinstance(written, Annotated):
                    patterns += self._annotations(pattern, written, start)
        return patterns

    # --- triple terms, reifiers and annotations of RDF 1.2 ---

    def _annotations(self, pattern: TriplePattern, written: Annotated, start: int) -> list[TriplePattern]:
        """The triples of ``:a :b :c ~ :r {| :p :q |}``: :r reifies the triple and has the properties."""
        self.no_paths([pattern], "an annotated triple")
        patterns: list[TriplePattern] = []
        named: Node | None = None
        for annotation in written.annotations:
            if isinstance(annotation, Reifier) or named is None:
                given = annotation.node if isinstance(annotation, Reifier) else None
                named = given if given is not None else self.fresh_blank(start, pattern.span.end)
                patterns.append(self._reifies(named, pattern))
            if not isinstance(annotation, Reifier):
                patterns += self._about(named, annotation, start)
                named = None
        return patterns

    def _reifies(self, node: Node, pattern: TriplePattern) -> TriplePattern:
        span = pattern.span
        term = self.triple_term([pattern.subject, pattern.predicate, pattern.object], span.start, span.end)
        return TriplePattern(node, Term(f"<{RDF}reifies>", span=span), term, span=span)

    def annotated(self, args: list[Any], start: int, end: int) -> Annotated:
        return Annotated(args[0], args[1:])

    def annotation(self, args: list[Any], start: int, end: int) -> Any:
        return args[0]

    annotation_block = annotation

    def reifier(self, args: list[Any], start: int, end: int) -> Reifier:
        return Reifier(args[0], Span(start, end))

    def reified_triple(self, args: list[Any], start: int, end: int) -> Reified:
        subject, verb, obj, reifier = args
        patterns: list[TriplePattern] = []
        for part in (subject, obj):
            if isinstance(part, Reified):
                patterns += part.patterns
            elif isinstance(part, Described):
                span, hint = part.node.span, "give it a name of its own, and describe it beside"
                self.fail("[ … ] and ( … ) are not allowed in a reified triple", span.start, span.end, hint=hint)
            self.no_list(part, "a reified triple")
        nodes = [part.node if isinstance(part, Described) else part for part in (subject, obj)]
        given = reifier.node if reifier is not None else None
        node = given if given is not None else self.fresh_blank(start, end)
        pattern = TriplePattern(nodes[0], self._simple(verb), nodes[1], span=Span(start, end))
        return Reified(node, [*patterns, self._reifies(node, pattern)])

    def properties(self, args: list[Any], start: int, end: int) -> list[tuple[Verb, list[Any]]]:
        return list(args)

    def property(self, args: list[Any], start: int, end: int) -> tuple[Verb, list[Any]]:
        verb, objects = args
        return (self._simple(verb), objects)

    def object_list(self, args: list[Any], start: int, end: int) -> list[Any]:
        return list(args)

    def blank_properties(self, args: list[Any], start: int, end: int) -> Described:
        node = self.fresh_blank(start, end)
        return Described(node, self._about(node, args[0], start))

    def collection(self, args: list[Any], start: int, end: int) -> Described:
        """``(1 2)`` as the chain of rdf:first and rdf:rest that it stands for (SPARQL §4.2.3)."""
        cells = [self.fresh_blank(start, end) for _ in args]
        patterns: list[TriplePattern] = []
        span = Span(start, end)
        for number, item in enumerate(args):
            node = item.node if isinstance(item, Described) else item
            following: Node = cells[number + 1] if number + 1 < len(cells) else Term(f"<{RDF}nil>", span=span)
            patterns.append(TriplePattern(cells[number], Term(f"<{RDF}first>", span=span), node, span=span))
            if isinstance(item, Described):
                patterns += item.patterns
            patterns.append(TriplePattern(cells[number], Term(f"<{RDF}rest>", span=span), following, span=span))
        return Described(cells[0], patterns)

    def triple_time(self, args: list[Any], start: int, end: int) -> TripleTime:
        subject, verb, obj = args
        pattern = TriplePattern(subject, self._simple(verb), obj, span=Span(start, end))
        self.no_paths([pattern], "timestamp()")
        self.dialects.add("c-sparql")
        return TripleTime(pattern, span=Span(start, end))

    def function_call(self, args: list[Any], start: int, end: int) -> Expression:
        """A call; that of C-SPARQL's function in the spelling of its engine is ``timestamp(s p o)``."""
        name, distinct, *nodes = args
        if name != _TIMESTAMP:
            return super().function_call(args, start, end)
        if distinct or len(nodes) != 3 or not all(isinstance(node, Var | Term) for node in nodes):
            self.fail(
                "C-SPARQL's timestamp takes the three places of a triple, each a variable or a term",
                start,
                end,
                code="arguments",
                hint="give it those of a pattern in the window, as in f:timestamp(?s, :p, ?o)",
            )
        self.dialects.add("c-sparql")
        return TripleTime(TriplePattern(*nodes, span=Span(start, end)), span=Span(start, end))

    def no_paths(self, patterns: list[TriplePattern] | tuple[TriplePattern, ...], where: str) -> None:
        for pattern in patterns:
            if not isinstance(pattern.predicate, Var | Term):
                self.fail(f"a property path is not allowed in {where}", pattern.span.start, pattern.span.end)

    # --- paths ---

    @staticmethod
    def _simple(verb: Verb) -> Verb:
        """A path of one IRI is that IRI."""
        return Term(verb.iri, span=verb.span) if isinstance(verb, PathIri) else verb

    def path_iri(self, args: list[Any], start: int, end: int) -> PathIri:
        return PathIri(args[0].spelling, span=Span(start, end))

    def path_a(self, args: list[Any], start: int, end: int) -> PathIri:
        return PathIri(RDF_TYPE, span=Span(start, end))

    def path_alternative(self, args: list[Any], start: int, end: int) -> PathAlternative:
        return PathAlternative(tuple(args), span=Span(start, end))

    def path_sequence(self, args: list[Any], start: int, end: int) -> PathSequence:
        return PathSequence(tuple(args), span=Span(start, end))

    def path_inverse(self, args: list[Any], start: int, end: int) -> PathInverse:
        return PathInverse(args[0], span=Span(start, end))

    def path_mark(self, args: list[Any], start: int, end: int) -> str:
        return str(args[0].text)

    def path_repeat(self, args: list[Any], start: int, end: int) -> PathRepeat:
        return PathRepeat(args[0], args[1], span=Span(start, end))

    def path_negated(self, args: list[Any], start: int, end: int) -> PathNegated:
        forward = tuple(iri for iri, backwards in args[0] if not backwards)
        inverse = tuple(iri for iri, backwards in args[0] if backwards)
        return PathNegated(forward, inverse, span=Span(start, end))

    def negated_set(self, args: list[Any], start: int, end: int) -> list[tuple[str, bool]]:
        return [a for a in args if a is not None]

    def negated_one(self, args: list[Any], start: int, end: int) -> tuple[str, bool]:
        return self._iri_in_path(args[0]), False

    def negated_inverse(self, args: list[Any], start: int, end: int) -> tuple[str, bool]:
        return self._iri_in_path(args[0]), True

    @staticmethod
    def _iri_in_path(step: Term | PathIri) -> str:
        return step.iri if isinstance(step, PathIri) else step.spelling

    # --- groups and what stands in them ---

    def group(self, args: list[Any], start: int, end: int) -> Group:
        return Group(tuple(a for a in args if a is not None), span=Span(start, end))

    def filter(self, args: list[Any], start: int, end: int) -> Filter:
        return Filter(args[0], span=Span(start, end))

    def optional(self, args: list[Any], start: int, end: int) -> Optional:
        return Optional(args[0], span=Span(start, end))

    def minus(self, args: list[Any], start: int, end: int) -> Minus:
        return Minus(args[0], span=Span(start, end))

    def bind(self, args: list[Any], start: int, end: int) -> Bind:
        return Bind(args[0], args[1], span=Span(start, end))

    def silent(self, args: list[Any], start: int, end: int) -> bool:
        return True

    def service(self, args: list[Any], start: int, end: int) -> Service:
        silent, endpoint, group = args
        return Service(endpoint, group, bool(silent), span=Span(start, end))

    def chain_operator(self, args: list[Any], start: int, end: int) -> Operator:
        return Operator(args[0].text.upper())

    tight_operator = chain_operator

    def combined(self, args: list[Any], start: int, end: int) -> Combined:
        left, operator, right = args
        for side in (left, right):
            if isinstance(side, Combined) and (side.operator is Operator.UNION) != (operator is Operator.UNION):
                other = side.operator if operator is Operator.UNION else operator
                order = f"{other.value} binds tighter" if other in TIGHT else "they are taken from left to right"
                self.warn(
                    f"UNION and {other.value} are mixed without braces: {order}",
                    start,
                    end,
                    code="mixed-operators",
                    hint="put braces around the part that belongs together",
                )
        ended = left.until if isinstance(left, Repeat) and operator is Operator.UNION else None
        if ended is not None and left.span.end == ended.span.end:
            self.warn(
                "this UNION joins the whole run with what follows it, which does not end the run",
                start,
                end,
                code="mixed-operators",
                hint="put what may end the run into the braces, UNTIL { { … } UNION { … } }, or braces around the run",
            )
        return Combined(operator, left, right, span=Span(start, end))

    def graph_group(self, args: list[Any], start: int, end: int) -> GraphGroup:
        return GraphGroup(args[0], args[1], span=Span(start, end))

    def stream_group(self, args: list[Any], start: int, end: int) -> StreamGroup:
        stream, window, group = args
        if window is not None:
            self.dialects.add("cqels")
        return StreamGroup(stream, group, window, span=Span(start, end))

    def event_group(self, args: list[Any], start: int, end: int) -> EventGroup:
        return EventGroup(args[1], args[0], span=Span(start, end))

    def window_group(self, args: list[Any], start: int, end: int) -> WindowGroup:
        return WindowGroup(args[0], args[1], span=Span(start, end))

    def current_group(self, args: list[Any], start: int, end: int) -> Current:
        return Current(args[0], span=Span(start, end))

    def start_group(self, args: list[Any], start: int, end: int) -> Start:
        return Start(span=Span(start, end))

    def within_group(self, args: list[Any], start: int, end: int) -> Within:
        pattern, bound = args
        return Within(pattern, bound, span=Span(start, end))

    # --- event patterns of RSEP-QL ---

    def event_declaration(self, args: list[Any], start: int, end: int) -> EventDeclaration:
        window, group, name = args
        self.dialects.add("rsep-ql")
        return EventDeclaration(window, group, name.text, span=Span(start, end))

    def match_events(self, args: list[Any], start: int, end: int) -> Match:
        return Match(args[0], span=Span(start, end))

    match_group = match_events

    def event_name(self, args: list[Any], start: int, end: int) -> EventName:
        return EventName(args[0].text, span=Span(start, end))

    def first_last(self, args: list[Any], start: int, end: int) -> str:
        return str(args[0].text.upper())

    def event_unary(self, args: list[Any], start: int, end: int) -> EventUnary:
        return EventUnary(args[0], args[1], span=Span(start, end))

    def named_policy(self, args: list[Any], start: int, end: int) -> str:
        return str(args[0].text.lower())

    def sequence_policy(self, args: list[Any], start: int, end: int) -> str:
        given = args[0] if isinstance(args[0], str) else args[0].text.lower()
        policy = _SEQUENCES.get(given, given)
        if policy not in ("", "naive", "chronological", "recent"):
            self.fail(f"'{given}' is no policy of SEQ", start, end, hint="naive, chronological or recent (^n, ^c, ^r)")
        return policy

    def event_sequence(self, args: list[Any], start: int, end: int) -> EventSequence:
        left, policy, right = args
        return EventSequence(left, right, policy or "", span=Span(start, end))

    # --- inline data ---

    def undef(self, args: list[Any], start: int, end: int) -> None:
        return None

    def value_names(self, args: list[Any], start: int, end: int) -> tuple[Var, ...]:
        named: set[str] = set()
        for variable in args:
            if variable.name in named:
                span = variable.span
                hint = "every column of VALUES has a variable of its own"
                self.fail(f"VALUES names ?{variable.name} twice", span.start, span.end, code="values", hint=hint)
            named.add(variable.name)
        return tuple(args)

    def value_row(self, args: list[Any], start: int, end: int) -> tuple[tuple[Term | None, ...], Span]:
        return tuple(self._data(a, start) for a in args), Span(start, end)

    @staticmethod
    def _data(value: Any, start: int) -> Term | None:
        return Term(value, span=Span(start, start)) if isinstance(value, str) else value

    def values_single(self, args: list[Any], start: int, end: int) -> Values:
        variable, *data = args
        return Values((variable,), tuple((self._data(d, start),) for d in data), span=Span(start, end))

    def values(self, args: list[Any], start: int, end: int) -> Values:
        names, *rows = args
        for row, span in rows:
            if len(row) != len(names):
                self.fail(
                    f"this row has {len(row)} values, but VALUES names {len(names)} variables",
                    span.start,
                    span.end,
                    code="values",
                    hint="write UNDEF where a variable has no value",
                )
        return Values(names, tuple(row for row, _ in rows), span=Span(start, end))
