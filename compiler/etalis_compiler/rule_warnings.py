"""Warnings about a program that can be run, which point into its text.

Unbounded state, cross products, patterns and filters that can never hold, CONSTRUCTs that nothing reads, comparisons
that can only be an error.  Errors have been found by the parser before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.durations import duration_text
from etalis_rules.lateness import latenesses
from etalis_rules.messages import closest
from etalis_rules.operator_words import keyword
from etalis_rules.operators import reads_stream
from etalis_rules.printing import node_names
from etalis_rules.terms import RDF

from . import ast
from .diagnostics import Diagnostic, shorten
from .explain import names_in_query, users
from .knowledge import NO_KNOWLEDGE, KnowledgeSummary
from .lasting_events import lasting_operands
from .pipeline import Compilation, CompiledQuery, rules_of
from .scope import conjuncts, free_variables, in_scope
from .stratify import StreamReaders, feeds
from .unbounded import UnboundedState, unbounded


def check(
    compilation: Compilation, knowledge: KnowledgeSummary = NO_KNOWLEDGE, policy: str = "unrestricted"
) -> tuple[Diagnostic, ...]:
    """All warnings about a program, those of the parser included, in the order of the text."""
    rules = rules_of(compilation, knowledge, policy)
    diagnostics = list(compilation.warnings)
    diagnostics += _unbounded(compilation, rules)
    diagnostics += _unused(compilation, rules)
    diagnostics += _past(compilation, rules)
    diagnostics += _lasting(compilation, rules)
    for query in compilation.queries:
        equated = tuple(_equated(query))
        for node in ast.walk(query.syntax):
            diagnostics += _about(node, query, compilation, equated)
    order = {q.source.name: i for i, q in reversed(list(enumerate(compilation.queries)))}
    unique = dict.fromkeys(diagnostics)
    return tuple(sorted(unique, key=lambda d: (order.get(d.source, 0), d.line, d.column)))


def _about(node: Any, query: CompiledQuery, compilation: Compilation, equated: Equated) -> Iterator[Diagnostic]:
    match node:
        case ast.Group():
            yield from _cross_products(node, query, equated)
        case ast.Combined() if node.operator is not ast.Operator.UNION:
            yield from _cross_sides(node.left, node.right, node.operator.value, query, equated)
        case ast.SeqOptional(left, _, right) if right is not None:
            yield from _cross_sides(left, right, ast.keyword(node), query, equated)
        case ast.Within(pattern, bound):
            yield from _too_short(pattern, bound, query)
        case ast.Query(where=pattern, within=bound) if node is query.syntax and not query.algebra.grouped:
            if pattern is not None and bound is not None:
                yield from _too_short(pattern, bound, query)
        case ast.StreamGroup():
            yield from _never_derived(node, query, compilation)
        case ast.TriplePattern() if not _in_template(node, query):
            if isinstance(node.subject, ast.Term) and node.subject.spelling[:1] == '"':
                yield _warn(query, "never", "a literal is the subject of no triple", node.subject, "turn it round")
        case ast.Values() if not node.rows:
            yield _warn(query, "never", "VALUES without a row: nothing can match", node, "give it a row, or remove it")


def _warn(query: CompiledQuery, code: str, message: str, node: Any, hint: str = "") -> Diagnostic:
    span = node.span
    return query.source.diagnostic("warning", code, message, span.start, span.end, hint=hint)


def _text(query: CompiledQuery, node: Any) -> str:
    return query.source.excerpt(node.span.start, node.span.end)


# --- state -----------------------------------------------------------------------------------------------------


def _unbounded(compilation: Compilation, rules: ir.Rules) -> Iterator[Diagnostic]:
    """One warning for each place of the text that makes the program remember without end.

    Of a sequence whose last group alone is bounded, the parser has told that already, with what to write instead.
    """
    told = {(w.source, w.line, w.column) for w in compilation.warnings if w.code == "last-bound"}
    names = node_names(rules)
    used = users(rules)
    queries = {q.name: q for q in compilation.queries}
    shown = {output.query: names_in_query(rules, output) for output in rules.outputs}
    reported: set[tuple[str, ast.Span]] = set()
    for kept in unbounded(rules, names):
        for name in (kept.query,) if kept.query else used[kept.node]:
            query = queries[name]
            place = _place(kept, rules, query)
            if (name, place.span) not in reported and _bound_of_the_last_side(place, query) not in told:
                reported.add((name, place.span))
                message = f"this keeps {kept.told(shown[name].get(kept.node, {}))} for ever"
                yield _warn(query, "unbounded", message, place, _of_one_side(place, query) or _hint(kept, place, query))


def _hint(kept: UnboundedState, place: Any, query: CompiledQuery) -> str:
    """Advice on how to bound unbounded state.

    If several patterns have the same subject, EVENT is suggested as well: a single event may match them all, and then
    nothing is kept.
    """
    subjects = [
        pattern.subject.name
        for pattern in (place.patterns if isinstance(place, ast.Triples) else ())
        if isinstance(pattern.subject, ast.Var)
        and isinstance(pattern.predicate, ast.Term)
        and pattern.predicate.spelling != f"<{RDF}type>"
    ]
    if len(subjects) == len(set(subjects)):
        return kept.hint
    text = shorten(query.source.text[place.span.start : place.span.end])
    return f"{kept.hint}; if one event says all of it, as a row does: EVENT {{ {text} }}"


def _bound_of_the_last_side(place: Any, query: CompiledQuery) -> tuple[str, int, int] | None:
    """Where the WITHIN stands that ends an operator and belongs to its last side."""
    for side, _ in ast.sides(place)[-1:]:
        if isinstance(side, ast.Within):
            return query.source.name, *query.source.position(side.span.start)
    return None


def _of_one_side(place: Any, query: CompiledQuery) -> str:
    """The hint for a WITHIN after two sides that is meant for both but belongs to the second."""
    if not isinstance(place, ast.Combined) or not isinstance(place.right, ast.Within):
        return ""
    within = query.source.text[place.right.pattern.span.end : place.right.span.end].strip()
    one = _text(query, place.right.pattern)
    return f"{within} bounds {one} alone; braces around both sides bound the whole: {{ … {one} }} {within}"


def _place(kept: UnboundedState, rules: ir.Rules, query: CompiledQuery) -> Any:
    """The part of the text that a warning about a node points to: the first construct of the node's kind."""
    syntax = query.syntax
    if not kept.node:
        return syntax.form
    node = rules.node(kept.node)
    kind, word = _CONSTRUCTS.get(type(node)), keyword(node) or "AND"
    wanted: Iterator[Any]
    if kind is not None:
        wanted = (n for n in ast.walk(syntax) if isinstance(n, kind))
    else:
        # A SEQ OPTIONAL has plain SEQs among its rules.
        words = (word, "SEQ OPTIONAL") if word == "SEQ" else (word,)
        wanted = (n for n in ast.walk(syntax) if ast.word_of(n) in words)
        if word == "AND":  # the patterns of a block are joined, too
            blocks = (n for n in ast.walk(syntax.where) if isinstance(n, ast.Triples) and len(n.patterns) > 1)
            wanted = chain(blocks, wanted)
    return next(wanted, syntax.where or syntax)


_CONSTRUCTS: dict[type, type] = {ir.Recall: ast.Exists, ir.Closure: ast.PathRepeat, ir.Group: ast.Aggregate}
"""What stands in the text for a node that no operator stands for."""


# --- cross products --------------------------------------------------------------------------------------------

_CROSS = "share a variable, or make sure that one side is rare: every solution is paired with every other"


def _cross_sides(
    left: ast.Pattern, right: ast.Pattern, word: str, query: CompiledQuery, equated: Equated
) -> Iterator[Diagnostic]:
    one, other = in_scope(left), in_scope(right)
    if one and other and not one & other and not (word in _KEYED and _are_equated(one, other, equated)):
        message = f"the two sides of {word} share no variable: a cross product"
        yield _warn(query, "cross-product", message, right, _CROSS)


_AT_ONCE = {ast.Operator.EQUALS, ast.Operator.FINISHES}
_KEYED = {"SEQ", "AND", *(operator.value for operator in (ast.TIGHT | ast.SEEING_RIGHT) - _AT_ONCE)}
"""The operators whose sides find one another by what they compare by ``=`` (``etalis_rules.sides.equal_sides``)."""


Equated = Sequence[tuple[set[str], set[str]]]
"""The variables of the two sides of each equality that a FILTER of a query asks for."""


def _are_equated(one: set[str], other: set[str], equated: Equated) -> bool:
    """Whether what two parts with these variables compute is compared by ``=``."""
    return any((a <= one and b <= other) or (a <= other and b <= one) for a, b in equated)


def _equated(query: CompiledQuery) -> Iterator[tuple[set[str], set[str]]]:
    for node in ast.walk(query.syntax.where):
        for e in conjuncts(node.condition) if isinstance(node, ast.Filter) else ():
            match e:
                case (
                    ast.Binary(operator="=", left=one, right=other)
                    | ast.In(operand=one, choices=(other,), negated=False)
                    | ast.Call(name="SAMETERM", arguments=(one, other))
                ):
                    sides = tuple({v.name for v in free_variables(side)} for side in (one, other))
                    if all(sides):
                        yield sides[0], sides[1]


def _cross_products(group: ast.Group, query: CompiledQuery, equated: Equated) -> Iterator[Diagnostic]:
    """Parts of a group that share no variable with those before them."""
    parts: list[tuple[Any, set[str]]] = []
    for element in group.elements:
        match element:
            case ast.Triples(patterns):
                parts += [(p, in_scope(ast.Triples((p,))) | _blanks(p)) for p in patterns]
            case ast.Bind(expression, variable):
                read = {v.name for v in free_variables(expression)}
                parts.append((None, read | {variable.name} if read else set()))
            case ast.Filter() | ast.Minus() | ast.EventDeclaration() | ast.Match() | ast.WindowGroup():
                pass
            case _:
                parts.append((element, in_scope(element)))
    joined: list[tuple[Any, set[str]]] = []  # connected parts, each with its first element
    for place, names in parts:
        if not names:
            continue
        joinable = [c for c in joined if c[1] & names]
        rest = [c for c in joined if not c[1] & names]
        whole = names.union(*(c[1] for c in joinable))
        places = [c[0] for c in joinable if c[0] is not None]
        joined = [*rest, (places[0] if places else place, whole)]
    for one, other in equated:
        both = [c for c in joined if one <= c[1] or other <= c[1]]
        if len(both) == 2:
            first = min((c[0] for c in both if c[0] is not None), key=lambda p: p.span.start, default=None)
            joined = [*(c for c in joined if c not in both), (first, both[0][1] | both[1][1])]
    # A BIND alone is one row at most.
    parted = sorted((c for c in joined if c[0] is not None), key=lambda c: c[0].span.start)
    elsewhere = _outside(group, query) if len(parted) > 1 else set()
    for place, names in parted[1:]:
        message = "this shares no variable with the patterns before it: a cross product"
        hint = _CROSS
        if shared := sorted(names & elsewhere):
            hint = f"if it is background knowledge, write it in the braces that ?{shared[0]} comes from, to look it up"
        yield _warn(query, "cross-product", message, place, hint)


def _outside(group: ast.Group, query: CompiledQuery) -> set[str]:
    """The variables of the triples that stand outside a group."""
    inside = range(group.span.start, group.span.end)
    triples = (node for node in ast.walk(query.syntax.where) if isinstance(node, ast.Triples))
    return set().union(*(in_scope(node) for node in triples if node.span.start not in inside))


def _blanks(pattern: ast.TriplePattern) -> set[str]:
    """The blank nodes of a pattern, which join like variables."""
    return {"_:" + node.label for node in ast.walk(pattern) if isinstance(node, ast.Blank)}


# --- what can never hold ---------------------------------------------------------------------------------------


def _too_short(pattern: ast.Pattern, bound: ast.Duration, query: CompiledQuery) -> Iterator[Diagnostic]:
    """A WITHIN too short for a SEQ, which always lasts longer than zero, or for the time that something waits."""
    given, least = ast.microseconds(bound), ast.shortest_match(pattern)
    inner = ast.alone(pattern)
    if given == 0 and isinstance(inner, ast.Combined) and inner.operator is ast.Operator.SEQ:
        message = "a SEQ never fits into a window of length zero: its left ends before its right starts"
        yield _warn(query, "never", message, bound, "give the window a length, or use EQUALS")
    elif given is not None and given < least:
        message = f"every match of this group lasts {duration_text(0, least)} or longer, so none fits into this WITHIN"
        yield _warn(query, "never", message, bound, ast.WAITS)


def _never_derived(node: ast.StreamGroup, query: CompiledQuery, compilation: Compilation) -> Iterator[Diagnostic]:
    """A pattern over a stream of the program itself, to which no rule writes matching triples."""
    if not isinstance(node.stream, ast.Term):
        return
    names = (node.stream.spelling, node.stream.spelling[1:-1])
    writers = [
        q
        for q in compilation.queries
        if q.syntax.register is not None and q.syntax.register.kind == "STREAM" and q.syntax.register.name in names
    ]
    if not writers:
        return
    templates = [t for q in writers for t in q.template]
    for pattern in (n for n in ast.walk(node.group) if isinstance(n, ast.TriplePattern)):
        leaf = ir.Leaf((), _position(pattern.subject), _position(pattern.predicate), _position(pattern.object))
        if not any(feeds(t, "", leaf) for t in templates):
            derived = {t.predicate.term for t in templates if isinstance(t.predicate, alg.Const)}
            hint = (
                f"the rules write {', '.join(sorted(derived))}" if derived else "compare it with the CONSTRUCT template"
            )
            message = f"no rule writes such a triple to the stream {names[0]}"
            yield _warn(query, "never", message, pattern, hint)


def _position(node: Any) -> ir.Position:
    spelling = ast.spelling_of(node)
    return alg.Const(spelling) if spelling else ir.Any()


def _in_template(pattern: ast.TriplePattern, query: CompiledQuery) -> bool:
    form = query.syntax.form
    return isinstance(form, ast.Construct) and form.template is not None and pattern in form.template


# --- derived events that last --------------------------------------------------------------------------------------


def _lasting(compilation: Compilation, rules: ir.Rules) -> Iterator[Diagnostic]:
    """What is next or absent, among events that a rule derives with the interval of its matches."""
    used = users(rules)
    queries = {q.name: q for q in compilation.queries}
    for node, maker in lasting_operands(rules):
        word = keyword(rules.node(node))
        for name in used[node]:
            place = next((n for n in ast.walk(queries[name].syntax) if ast.word_of(n) == word), queries[name].syntax)
            message = f"{maker} derives events that last as long as its matches, and {word} goes by starts and ends"
            hint = f"to take them as points, write AT END after the template of {maker}: CONSTRUCT {{ … }} AT END WHERE"
            yield _warn(queries[name], "hull", message, place, hint)


# --- rules that nothing reads -----------------------------------------------------------------------------------


def _unused(compilation: Compilation, rules: ir.Rules) -> Iterator[Diagnostic]:
    """A CONSTRUCT that no query reads, in a program that has other queries (else its user reads the triples)."""
    if all(o.form == "construct" for o in rules.outputs):
        return
    readers = StreamReaders(dict(rules.nodes))
    read = {spelling for q in compilation.queries for n in _predicates(q) if (spelling := ast.spelling_of(n))}
    for query, output in zip(compilation.queries, rules.outputs, strict=True):
        if output.form != "construct" or readers.fed_by(output):
            continue
        derived = [t.predicate.term for t in output.template if isinstance(t.predicate, alg.Const)]
        others = {_local(name): name for name in read - set(derived)}
        near = next((match for name in derived if (match := closest(_local(name), others))), "")
        hint = f"did you mean {others[near]}?" if near else "remove it, or query what it derives"
        yield _warn(query, "unused", "no pattern of the program reads what this CONSTRUCT derives", _form(query), hint)


def _past(compilation: Compilation, rules: ir.Rules) -> Iterator[Diagnostic]:
    """A rule that derives some events after their end, where operators read it that have decided by then."""
    nodes = dict(rules.nodes)
    in_time = StreamReaders({name: node for name, node in nodes.items() if reads_stream(node) and node.in_time})
    late = latenesses(nodes)
    for query, output in zip(compilation.queries, rules.outputs, strict=True):
        if output.source is None or not late[output.source.node]:
            continue
        if any(in_time.seeing(template, output.stream) for template in output.template):
            message = (
                "a row that changes because something left the window or the result ended before: "
                f"{alg.ONLY_FORWARD}, which have decided by then, do not see what is derived from it"
            )
            hint = (
                "they see the rows of groups that something has entered; a window with steps, FROM NAMED WINDOW :w "
                "ON :s [RANGE 10s STEP 1s], derives its events at each step"
            )
            yield _warn(query, "past", message, _form(query), hint)


def _local(iri: str) -> str:
    """The part of an IRI after its namespace."""
    return re.split("[/#:]", iri[1:-1])[-1]


def _form(query: CompiledQuery) -> Any:
    form = query.syntax.form
    template = form.template if isinstance(form, ast.Construct) else None
    return template[0] if template else form


def _predicates(query: CompiledQuery) -> Iterable[Any]:
    if query.syntax.where is None:
        return ()
    return (n.predicate for n in ast.walk(query.syntax.where) if isinstance(n, ast.TriplePattern))
