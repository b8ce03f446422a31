"""From query texts to rules: parse, translate, rewrite, binarize, stratify."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from etalis_rules import algebra as alg
from etalis_rules import program as ir

from . import ast
from .ast.query_kinds import is_windowed
from .binarize import Lowered, NodeBuilder, backwards, builder, holds_event, lower_select
from .diagnostics import Diagnostic, QueryError, Source, hash_of_text
from .knowledge import NO_KNOWLEDGE, KnowledgeSummary
from .parser import parse
from .rewrites.push_filters import push_select
from .rewrites.push_windows import Surroundings, push_select_windows
from .rewrites.reorder import AS_WRITTEN, JoinOrder, reorder_select
from .stratify import feeds, past_events, stratify, timely_sides
from .template_terms import template_node, template_patterns
from .translate import translate, visible
from .unsupported import Fault, within_depth

POLICIES = ("unrestricted", "chronological", "recent")


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """One query of a program: its syntax, its algebra and the name its matches carry.

    ``prefixes`` and ``base`` are those at the end of its text.  ``coupling`` is the order in which its joins are
    coupled if nothing is consumed.  The ids of its matches begin with ``identity`` (``QueryNames``).
    """

    name: str
    syntax: ast.Query
    algebra: alg.Select
    source: Source
    template: tuple[ir.Template, ...] = ()
    prefixes: tuple[tuple[str, str], ...] = ()
    coupling: JoinOrder = AS_WRITTEN
    base: str = ""
    identity: str = ""

    @property
    def text(self) -> str:
        """Its own part of its source, which may have several queries."""
        span = self.syntax.span
        return self.source.text[span.start : span.end]


@dataclass(frozen=True, slots=True)
class Compilation:
    """The queries of a program, ready to be made into rules for any background knowledge."""

    queries: tuple[CompiledQuery, ...]
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def kinds(self) -> tuple[CompiledQuery, ...]:
        """The queries, with one for all that are compiled together."""
        return self.queries

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the queries, in the order of the program."""
        return tuple(query.name for query in self.queries)


def compile_sources(
    sources: Iterable[Source],
    *,
    base: str = "",
    prefixes: dict[str, str] | None = None,
    coupling: JoinOrder = AS_WRITTEN,
) -> Compilation:
    """Parse and translate; several texts form one program."""
    parsed = [(parse(s.text, source=s.name, base=base, prefixes=prefixes), s) for s in sources]
    return compile_documents(parsed, coupling)


def compile_documents(
    documents: Iterable[tuple[ast.Document, Source]], coupling: JoinOrder = AS_WRITTEN
) -> Compilation:
    """Translate parsed texts, each with the source that its spans point into."""
    queries: list[CompiledQuery] = []
    warnings: list[Diagnostic] = []
    taken = QueryNames()
    for document, source in documents:
        warnings.extend(document.warnings)
        for syntax in document.queries:
            if is_windowed(syntax):
                raise source.error(
                    "windowed",
                    "this query is evaluated over windows; here EP-SPARQL queries are compiled",
                    syntax.span.start,
                    syntax.span.end,
                    hint="compile it with etalis_py.compile, which takes both",
                )
            name, identity = taken.take(syntax, source, len(document.queries))
            try:
                template, names = template_of(syntax), document.prefixes
                algebra = translate(syntax)
                base = document.base
                queries.append(CompiledQuery(name, syntax, algebra, source, template, names, coupling, base, identity))
            except Fault as fault:
                raise located(fault, source, syntax) from None
    return Compilation(tuple(queries), tuple(warnings))


class QueryNames:
    """The names of the queries of a program, in its order, and what the ids of their matches begin with."""

    def __init__(self) -> None:
        self.sources: dict[str, Source] = {}
        self._same = Counter[str]()

    def take(self, syntax: ast.Query, source: Source, in_source: int) -> tuple[str, str]:
        """The name and the identity of the next query, one of so many in its source."""
        name = _name(syntax, source, in_source, len(self.sources))
        return name, self.add(name, source, _identity(syntax, source, in_source))

    def add(self, name: str, source: Source, identity: str) -> str:
        """Take a query; returns its identity, which is numbered if earlier queries have the same text."""
        if name in self.sources:
            raise source.error("duplicate-name", f"two queries are named {name}", 0, 1, hint="rename one of them")
        self.sources[name] = source
        self._same[identity] += 1
        return identity if self._same[identity] == 1 else f"{identity} {self._same[identity]}"


def _identity(syntax: ast.Query, source: Source, in_source: int) -> str:
    """What the ids of a query's matches count it by: the name that it was given, else a hash of its text."""
    if syntax.identity:
        return syntax.identity
    if syntax.register is not None:
        return syntax.register.name
    return source.identity if in_source == 1 else hash_of_text(source.text[syntax.span.start : syntax.span.end])


def _name(syntax: ast.Query, source: Source, in_source: int, before: int) -> str:
    """The registered name, else the name of the file if it holds only one query, else a number."""
    if syntax.register is not None:
        return syntax.register.name
    return (source.stem if in_source == 1 else "") or f"q{before + 1}"


def located(fault: Fault, source: Source, syntax: ast.Query) -> QueryError:
    """The fault as an error that points into the query's text."""
    span = fault.span or syntax.span
    return source.error(fault.code, fault.message, span.start, span.end, hint=fault.hint)


def template_of(syntax: ast.Query) -> tuple[ir.Template, ...]:
    """The CONSTRUCT template."""
    return tuple(
        ir.Template(_template_node(p.subject), _template_node(p.predicate), _template_node(p.object))
        for p in template_patterns(syntax)
    )


def _template_node(node: object) -> alg.Var | alg.Const:
    if isinstance(node, ast.Var | ast.Blank | ast.Term | ast.TripleTerm):
        return template_node(node)
    raise Fault("template-path", "a property path is not allowed in a CONSTRUCT template", "write a plain predicate")


def rules_of(
    compilation: Compilation, knowledge: KnowledgeSummary = NO_KNOWLEDGE, policy: str = "unrestricted"
) -> ir.Rules:
    """The EDBC rules of a program.  ``policy`` holds for the queries that name none themselves."""
    past: dict[tuple[ir.Template, str], int] = {}
    while True:
        nodes, outputs = _lowered(compilation, knowledge, policy, past)
        # What reads events of the past may derive some itself, so this is repeated until no more are found.
        if (found := past_events(nodes, outputs)) == past:
            return link(nodes, outputs, compilation, policy)
        past = found


def _lowered(
    compilation: Compilation, knowledge: KnowledgeSummary, policy: str, past: Mapping[tuple[ir.Template, str], int]
) -> tuple[dict[str, ir.Node], list[ir.Output]]:
    """The nodes and outputs of a program; ``past``: the triples that its rules derive late, and how late."""
    nodes: dict[str, ir.Node] = {}
    outputs: list[ir.Output] = []
    for query in compilation.queries:
        chosen = query.syntax.policy or policy
        if chosen not in POLICIES:
            raise ValueError(f"unknown policy {chosen!r}: use one of {', '.join(POLICIES)}")
        collected = builder(knowledge, chosen, query.name, nodes)
        collected.derived_late = lambda node: max(
            (longest for (template, stream), longest in past.items() if feeds(template, stream, node)), default=0
        )
        try:
            with within_depth():
                if not collected.consuming:
                    query = replace(query, algebra=reorder_select(query.algebra, query.coupling))
                outputs.append(_output(query, collected))
        except Fault as fault:
            raise located(fault, query.source, query.syntax) from None
    return nodes, outputs


def link(nodes: dict[str, ir.Node], outputs: Sequence[ir.Output], compilation: Compilation, policy: str) -> ir.Rules:
    """Put the nodes into evaluation order."""
    kept = _reachable(nodes, outputs)
    _refuse_backwards(kept, outputs, compilation)
    try:
        timely_sides(kept)
        with within_depth():
            strata = stratify(kept, outputs)
    except Fault as fault:
        first = compilation.queries[0]
        raise located(fault, first.source, first.syntax) from None
    order = [name for stratum in strata for name in stratum if name in kept]
    return ir.Rules(tuple((name, kept[name]) for name in order), tuple(outputs), strata, policy)


def _refuse_backwards(nodes: dict[str, ir.Node], outputs: Sequence[ir.Output], compilation: Compilation) -> None:
    """Refuse EVENT where it would be looked for backwards, at the query that has it there."""
    if not any(map(holds_event, (*nodes.values(), *outputs))):
        return
    for output in outputs:
        if any(map(holds_event, (*_reachable(nodes, (output,)).values(), output))):
            query = next((q for q in compilation.queries if q.name == output.query), compilation.queries[0])
            raise located(backwards(), query.source, query.syntax)


def _reachable(nodes: dict[str, ir.Node], outputs: Sequence[ir.Output]) -> dict[str, ir.Node]:
    wanted: set[str] = set()
    stack = [o.source.node for o in outputs if o.source is not None]
    while stack:
        name = stack.pop()
        if name in wanted:
            continue
        wanted.add(name)
        stack.extend(ir.made_from(nodes[name]))
    return {name: node for name, node in nodes.items() if name in wanted}


def _output(query: CompiledQuery, b: NodeBuilder) -> ir.Output:
    select = push_select(query.algebra)
    select = push_select_windows(select, Surroundings(b.summary, b.consuming))
    form = query.syntax.form
    template = query.template
    subjects: tuple[alg.Var | alg.Const, ...] = ()
    variables = select.variables
    hidden: tuple[str, ...] = ()
    match form:
        case ast.Construct():
            named = [n.name for t in template for n in (t.subject, t.predicate, t.object) if isinstance(n, alg.Var)]
            variables = tuple(dict.fromkeys(n for n in named if n in alg.scope(select.pattern)))
            fresh = any(n.startswith("_:") for n in named)
            if fresh:
                # A fresh blank node is a function of the whole solution.
                terms = [name for name in variables if name.startswith(alg.TRIPLE_TERM)]
                variables = (*visible(alg.scope(select.pattern)), *terms)
                # The terms that the pattern's blank nodes match show whether the rule itself led to a solution.
                hidden = tuple(sorted(n for n in alg.scope(select.pattern) if n.startswith("_:")))
        case ast.Describe(asked):
            subjects = tuple(_template_node(s) for s in asked) or tuple(map(alg.Var, select.variables))
            variables = tuple(dict.fromkeys(s.name for s in subjects if isinstance(s, alg.Var)))
        case ast.Ask():
            variables = ()
    if not select.grouped:
        select = replace(select, variables=(*variables, *hidden))
    b.keeps_blank_nodes = bool(hidden)
    part = lower_select(select, b, top=True)
    if isinstance(form, ast.Construct) and form.at_end:
        part = _at_end(part, select, b)
    stream = ""
    if query.syntax.register is not None and query.syntax.register.kind == "STREAM":
        stream = query.syntax.register.name
    names = {ast.Select: "select", ast.Construct: "construct", ast.Ask: "ask", ast.Describe: "describe"}
    handled = select.grouped
    timeless = part.timeless if handled else _unsliced(part.timeless, part)
    return ir.Output(
        query=query.name,
        form=names[type(form)],
        source=part.timed,
        timeless=timeless,
        variables=variables,
        distinct=select.distinct and not handled,
        order=select.order,
        limit=None if handled else select.limit,
        offset=0 if handled else select.offset,
        template=template,
        stream=stream,
        subjects=subjects,
        identity=query.identity,
        late=part.late if handled else _unsliced(part.late, part),
    )


def _at_end(part: Lowered, select: alg.Select, b: NodeBuilder) -> Lowered:
    """The solutions as points, for AT END; what has no time is left as it is."""
    if select.grouped and not select.keys:
        raise Fault(
            "at-end",
            "without GROUP BY an aggregate also answers for a stream in which it found nothing, and that has no end",
            "add GROUP BY, or aggregate in a sub-SELECT: CONSTRUCT { … } AT END WHERE { SELECT … }",
        )
    if part.timed is None:
        return part
    return part._replace(timed=b.add(ir.Map(part.timed.columns, part.timed, at_end=True)))


def _unsliced(pattern: alg.Pattern | None, part: Lowered) -> alg.Pattern | None:
    """The query without LIMIT and DISTINCT; these apply later, to timeless rows and all others together."""
    if part.timed is None or not isinstance(pattern, alg.SubSelect):
        return pattern
    columns = part.timed.columns
    plain = replace(pattern.select, distinct=False, order=(), limit=None, offset=0, variables=columns)
    return alg.SubSelect(plain)


__all__ = ["POLICIES", "Compilation", "CompiledQuery", "compile_sources", "rules_of"]
