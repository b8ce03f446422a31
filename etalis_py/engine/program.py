"""Programs: compiled queries in the form that users handle."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from etalis_compiler import ast
from etalis_compiler.diagnostics import Diagnostic, Source
from etalis_compiler.explain import prefixes_of
from etalis_compiler.families.gathering import CompileOptions
from etalis_compiler.knowledge import NO_KNOWLEDGE, KnowledgeSummary
from etalis_compiler.parser import parse
from etalis_compiler.pipeline import POLICIES, Compilation, QueryNames, compile_documents, rules_of
from etalis_compiler.rewrites.reorder import AS_WRITTEN, JoinOrder, coupling
from etalis_compiler.rsp import (
    Circle,
    Entails,
    Fact,
    Unit,
    WindowPlan,
    WindowStage,
    is_windowed,
    plan_fact,
    plan_query,
    readers_of,
    stages_of,
    unit_of_fact,
    unit_of_plan,
    unit_of_rule,
    with_preset,
)
from etalis_compiler.rsp.checks import check_closing, doubtful_windows
from etalis_compiler.rule_warnings import check
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.messages import query_text

from etalis_py.engine.query_families import GatheredQueries, QueryFamily, gather, one_by_one

if TYPE_CHECKING:
    from etalis_py.engine.explain import ProgramExplanation
    from etalis_py.whynot.report import Report

Text: TypeAlias = str | Path | Source

_CALLS_OF_PATTERNS = re.compile("REGEX|REPLACE", re.IGNORECASE)


@dataclass(frozen=True, slots=True, repr=False)
class Program:
    """One or more queries, rules and facts that run together.

    ``compilation`` has the EP-SPARQL queries, ``plans`` those with windows (RSP-QL, RSEP-QL) in the order in which they
    are evaluated, ``facts`` what holds from one event until another.  ``policy`` applies to the EP-SPARQL queries that
    name none themselves (``USING POLICY recent``).  ``documents`` are the texts as they were read, ``preset`` is the
    one that windowed queries were compiled with, ``doubts`` are the warnings about them.
    """

    compilation: Compilation
    policy: str = "unrestricted"
    plans: tuple[WindowPlan, ...] = ()
    facts: tuple[Fact, ...] = ()
    documents: Sequence[tuple[ast.Document, Source]] = ()
    preset: str = ""
    doubts: tuple[Diagnostic, ...] = ()
    _rules: dict[str, ir.Rules] = field(default_factory=dict, compare=False)

    @property
    def windowed(self) -> bool:
        """Whether some query is evaluated over windows, or defines a fact."""
        return bool(self.plans or self.facts)

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of the queries, which their matches carry."""
        return (*(p.name for p in self.plans), *(f.name for f in self.facts), *self.compilation.names)

    @property
    def kinds(self) -> list[str]:
        """The names of the queries, with one for all those that differ only in constants."""
        rules = (query.name for query in self.compilation.kinds)
        return [*(p.name for p in self.plans), *(f.name for f in self.facts), *rules]

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(dict.fromkeys((*self.compilation.warnings, *self.doubts)))

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that the queries declare, for showing their terms; where they differ, the last query wins."""
        if isinstance(self.compilation, GatheredQueries):
            return prefixes_of(Compilation(self.compilation.kinds))
        prefixes = prefixes_of(self.compilation)
        for document, _ in self.documents:
            prefixes |= dict(document.prefixes)
        return prefixes

    # --- rules ---

    def rules(self, knowledge: KnowledgeSummary = NO_KNOWLEDGE) -> ir.Rules:
        """The event-driven backward-chaining rules of the EP-SPARQL queries."""
        if knowledge is not NO_KNOWLEDGE:
            return rules_of(self.compilation, knowledge, self.policy)
        rules = self._rules.get(self.policy)
        if rules is None:
            rules = self._rules[self.policy] = rules_of(self.compilation, knowledge, self.policy)
        return rules

    def explain(self, knowledge: KnowledgeSummary = NO_KNOWLEDGE) -> ProgramExplanation:
        """The plans, the rules in the notation of [EP] §5, and what follows from them; ``str()`` is the text."""
        compiled = self.compilation
        if not isinstance(compiled, GatheredQueries):
            return replace(self.explained(self.rules(knowledge)), families=one_by_one(compiled.queries))
        compiled = compiled.beside(knowledge)
        samples = Program(compiled.samples, self.policy)
        explained = samples.explain(knowledge)
        families = (*map(str, compiled.groups), *one_by_one(compiled.rest))
        together = compiled.rules(self.policy, knowledge)
        executor = explained.executor if together is None else self.explained(together).executor
        return replace(explained, executor=executor, families=families)

    def explained(self, rules: ir.Rules, knowledge: Any = None) -> ProgramExplanation:
        """The explanation with these rules: those of an engine may differ, because they are made for its background."""
        from etalis_py.engine.explain import ProgramExplanation  # a run explains nothing, and starts sooner

        return ProgramExplanation.of(self.plans, self.facts, rules, self.prefixes, readers_of(self.units), knowledge)

    def check(self, knowledge: KnowledgeSummary = NO_KNOWLEDGE) -> tuple[Diagnostic, ...]:
        """What is doubtful in the program: unbounded state, cross products, what can never hold, and so on."""
        compiled = self.compilation
        families: dict[str, QueryFamily] = {}
        derives = (query.syntax.kind == "construct" for query in compiled.kinds)
        if isinstance(compiled, GatheredQueries) and not any(derives):  # else one may read what another one derives
            families = {group.name: group for group in compiled.groups}
            compiled = compiled.samples
        rules = check(compiled, knowledge, self.policy) if compiled.queries else ()
        told = (families[d.source].about_all(d) if d.source in families else d for d in rules)
        return tuple(dict.fromkeys((*self.doubts, *told)))

    def can_never_match(self, *, checked: bool = True) -> tuple[Diagnostic, ...]:
        """The warnings about what lets nothing through, whatever happens.

        ``checked``: those that only ``check`` gives as well, which takes longer than compiling.
        """
        return tuple(warning for warning in (self.check() if checked else self.warnings) if warning.code == "never")

    # --- who feeds whom ---

    @property
    def units(self) -> list[Unit]:
        """The queries as they feed one another."""
        return [
            *map(unit_of_rule, self.compilation.queries),
            *map(unit_of_fact, self.facts),
            *map(unit_of_plan, self.plans),
        ]

    @property
    def patterns(self) -> Iterator[alg.Pattern]:
        """The patterns of all queries."""
        for query in self.compilation.queries:
            yield alg.SubSelect(query.algebra)
        for fact in self.facts:
            yield from (*fact.since, *fact.till)
        for plan in self.plans:
            yield alg.SubSelect(plan.select)
            yield from (match.group for match in plan.matches if match.group is not None)

    def stages(self, entails: Entails | None = None) -> tuple[WindowStage, ...]:
        """The order in which an instant passes the queries; ``entails``: what else holds where a triple does.

        Raises ``Circle`` if there is no such order.
        """
        return stages_of(self.units, entails)

    @property
    def inputs(self) -> frozenset[str]:
        """The streams that windowed queries read and that come from outside."""
        derived = {q.feeds for q in (*self.plans, *self.facts) if q.feeds}  # type: ignore[attr-defined]
        derived |= {q.syntax.register.name for q in self.compilation.kinds if q.syntax.register is not None}
        return frozenset().union(*(p.streams for p in self.plans)) - derived

    @property
    def unnamed(self) -> str:
        """The stream of events that name none: the only stream from outside, or ``""`` if there is not exactly one."""
        return next(iter(self.inputs)) if len(self.inputs) == 1 else ""

    def why_not(self, stream: Any, **asked: Any) -> Report:
        """Why there is no match, or not the expected one, over a finite stream: see ``etalis_py.whynot.why_not``.

        ``where`` and ``at`` say which match was expected; ``str()`` of the report is the text.
        """
        from etalis_py.whynot import why_not  # it runs an engine, and a program knows of none

        return why_not(self, stream, **asked)

    def __repr__(self) -> str:
        return str(self.explain())

    def _repr_html_(self) -> str:
        from etalis_py.notebook import program_html  # notebooks only

        return program_html(self)


def compile(  # the verb that the reader expects, as in ``re.compile``
    source: Text | Iterable[Text],
    *,
    policy: str = "unrestricted",
    base: str = "",
    prefixes: Mapping[str, str] | None = None,
    order: str = "",
    rates: Mapping[str, float] | None = None,
    preset: str = "",
) -> Program:
    """Make a program of query texts or files; several form one program, in any mixture of EP-SPARQL and windows.

    Where nothing is consumed, chains of SEQ and AND are coupled as written (``order="left"``), from the right
    (``"right"``), or so that the fewest goals are made (``"cost"``), given the ``rates`` of predicates in events per
    second.  ``preset`` (``c-sparql``, ``cqels``, ``sparqlstream``, ``ep-sparql-recent``, …) has every windowed query
    evaluated as that system does; without it, a query is evaluated as it says itself, or else as the language whose
    syntax it uses does.  A string with a line break, a space or a brace is a query, any other names a file.  Raises
    ``QueryError`` for a query that cannot be used.

    >>> compile("SELECT ?c WHERE { ?c :p ?x } SEQ { ?c :p ?y }").queries
    ('q1',)
    >>> text = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5M] { WINDOW :w { ?x :p ?y } }"
    >>> compile(text).plans[0].r2s
    'RSTREAM'
    """
    if policy not in POLICIES:
        raise ValueError(f"unknown policy {policy!r}: use one of {', '.join(POLICIES)}")
    texts = [source_of(item) for item in _items(source)]
    given = dict(prefixes or {})
    reading = CompileOptions(base, given, coupling(order, rates), policy)
    if gathered := gather(texts, reading):
        kinds = ((query.syntax, query.source) for query in gathered[0].kinds)
        return Program(gathered[0], policy, documents=gathered[1], preset=preset, doubts=_refused_patterns(kinds))
    documents = [(parse(t.text, source=t.name, base=base, prefixes=given), t) for t in texts]
    return program_of(documents, policy=policy, preset=preset, joins=coupling(order, rates))


def family_of(text: Source, policy: str) -> Program | None:
    """A text as the first of a family, so that the next one compiles nothing; None if it cannot start a family."""
    gathered = gather([text], CompileOptions("", {}, AS_WRITTEN, policy), fewest=1)
    return None if gathered is None else Program(gathered[0], policy, documents=gathered[1])


def program_of(
    documents: Iterable[tuple[ast.Document, Source]],
    *,
    policy: str = "unrestricted",
    preset: str = "",
    joins: JoinOrder = AS_WRITTEN,
) -> Program:
    """Make a program of parsed texts, each with the source that its spans point into."""
    texts = tuple(documents)
    doubts = _refused_patterns(texts)
    if not any(is_windowed(query) for document, _ in texts for query in document.queries):
        program = Program(compile_documents(texts, joins), policy, documents=texts, preset=preset, doubts=doubts)
    else:
        program = _with_windows(texts, policy, preset, joins)
        program = replace(program, doubts=(*program.doubts, *doubts))
    program.rules()
    return program


def _refused_patterns(texts: Iterable[tuple[ast.Document | ast.Query, Source]]) -> tuple[Diagnostic, ...]:
    """The warnings about what REGEX and REPLACE refuse; who calls neither does not load the functions for them."""
    asked = [text for text in texts if _CALLS_OF_PATTERNS.search(text[1].text)]
    if not asked:
        return ()
    from etalis_py.engine.constant_patterns import refused_patterns

    return tuple(refused_patterns(asked))


def _with_windows(texts: Sequence[tuple[ast.Document, Source]], policy: str, preset: str, joins: JoinOrder) -> Program:
    windowed: list[tuple[ast.Query, str, Source]] = []
    facts: list[Fact] = []
    others: list[tuple[ast.Document, Source]] = []
    doubts: list[Diagnostic] = []
    names = QueryNames()
    identities: dict[str, str] = {}
    for document, text in texts:
        doubts.extend(document.warnings)
        rest = []
        for query in document.queries:
            name, identities[name] = names.take(query, text, len(document.queries))
            if not is_windowed(query):
                rest.append(replace(query, register=_register(query, name), identity=identities[name]))
            elif query.kind == "fact":
                facts.append(replace(plan_fact(query, name, text), identity=identities[name]))
            else:
                windowed.append((query, name, text))
        if rest:
            others.append((replace(document, queries=tuple(rest)), text))
    plans = []
    for query, name, text in windowed:
        plan = _with_preset(plan_query(query, name, text, tuple(facts)), preset, text, query)
        plan = replace(plan, identity=identities[name])
        check_closing(plan, text, query)
        doubts.extend(doubtful_windows(plan, text, query))
        plans.append(plan)
    compilation = compile_documents(others, joins)
    program = Program(compilation, policy, tuple(plans), tuple(facts), tuple(texts), preset, tuple(doubts))
    return replace(program, plans=_in_order(program, names.sources))


def _register(query: ast.Query, name: str) -> ast.Register:
    """The name of a query in this program as if it had been written."""
    return query.register or ast.Register("QUERY", name, span=query.span)


def _with_preset(plan: WindowPlan, preset: str, source: Source, query: ast.Query) -> WindowPlan:
    if not preset:
        return plan
    try:
        return with_preset(plan, preset)
    except ValueError as fault:
        raise source.error("preset", str(fault), query.span.start, query.span.end) from None


def _in_order(program: Program, sources: Mapping[str, Source]) -> tuple[WindowPlan, ...]:
    """The plans, each after those that feed it."""
    try:
        stages = program.stages()
    except Circle as circle:
        raise sources[circle.names[0]].error(
            "cycle",
            f"{circle}, so that none can be evaluated first",
            0,
            1,
            hint="let one of them read a stream of its own, or write all of them as EP-SPARQL rules, which may be "
            "recursive",
        ) from None
    place = {name: number for number, name in enumerate(name for stage in stages for name in stage.names)}
    return tuple(sorted(program.plans, key=lambda plan: place[plan.name]))


Given = Program | Compilation | Text | Iterable[Text]


def program_from(given: Given) -> Program:
    """A program as it is, or compiled from its text or file."""
    if isinstance(given, Program):
        return given
    if isinstance(given, Compilation):
        return Program(given)
    return compile(given)


def declared_prefixes(given: Given | None) -> dict[str, str]:
    """The prefixes that a program declares; none if there is no program."""
    return {} if given is None else program_from(given).prefixes


def _items(given: Any) -> Iterable[Any]:
    """One or several texts as several; a frame or a dict is none, though its columns or keys are texts."""
    if isinstance(given, Text):
        return [given]
    if (
        not isinstance(given, Iterable)
        or isinstance(given, bytes | bytearray | Mapping)
        or hasattr(type(given), "__arrow_c_stream__")
    ):
        raise TypeError(_no_text(given))
    return given


def _no_text(given: object) -> str:
    return (
        f"expected a program, its text or its file, found {reprlib.repr(given)} ({type(given).__name__}): "
        'give compile("SELECT …"), "SELECT …" or Path("queries.rq"); it comes first, as in run(query, stream)'
    )


def source_of(item: Text) -> Source:
    """The text of a query, or of the file of that name."""
    if isinstance(item, Source):
        return item
    if not isinstance(item, str | Path):
        raise TypeError(_no_text(item))
    if isinstance(item, str) and (not item.strip() or any(c in item for c in "\n {")):
        return Source(item)
    path = Path(item)
    try:
        return Source(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError:
        return Source(query_text(path.read_bytes(), str(path)), str(path))  # says where it is no text
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no query file {path}; a query text must contain a brace") from None
