"""From programs and knowledge to rules: what the row and column executors of an engine run.

Programs give rules for a vocabulary.  They are joined by the rules of the schema (OWL 2 RL) that some query needs.
CONSTRUCTs over the background alone are evaluated before the stream starts: what they derive is background.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from etalis_compiler.knowledge import NO_KNOWLEDGE, KnowledgeSummary
from etalis_compiler.pipeline import Compilation, CompiledQuery, rules_of
from etalis_compiler.stratify import made_for, output_id
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.operators import event_patterns, keeps_state, reads_stream

from etalis_py.engine.query_families import GatheredQueries, QueryFamily
from etalis_py.kernel.background import compiler_summary
from etalis_py.kernel.dataset import choose
from etalis_py.kernel.owl_streams import HIDDEN, needed, owl_queries
from etalis_py.kernel.templates import making, template_triples
from etalis_py.knowledge import load
from etalis_py.sparql import BackgroundSource, prepare
from etalis_py.values.errors import LimitExceeded
from etalis_py.values.limits import LIMITS, Limits
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

_POLICY = "unrestricted"
"""The policy of queries that name none; here all of them name one."""

_OF_SCHEMA = re.compile(r"<http://www\.w3\.org/(?:2000/01/rdf-schema|2002/07/owl)#").match


@dataclass(slots=True)
class RulePlan:
    """The EP-SPARQL queries that run together, the knowledge they see, and the rules that follow.

    ``makers``: which rules led to a node that was derived from the background alone (``templates.Making``).
    ``gathered``: the queries with their families, if they run as families; ``queries`` has one query of each.
    ``nodes``: every node reports, too.
    ``vocabulary``: the predicates that the background has had; the rules expect that it may have them again.
    """

    knowledge: Any
    changes: bool = False
    limits: Limits = Limits()  # noqa: RUF009 - frozen
    queries: tuple[CompiledQuery, ...] = ()
    rules: ir.Rules = ir.Rules((), (), ())  # noqa: RUF009 - frozen
    makers: dict[str, Any] = field(default_factory=dict)
    gathered: GatheredQueries | None = None
    nodes: bool = False
    vocabulary: frozenset[str] = frozenset()
    _last: KnowledgeSummary = NO_KNOWLEDGE

    @property
    def names(self) -> frozenset[str]:
        """The names of the queries."""
        return frozenset(query.name for query in self.queries)

    def choose(self, queries: Sequence[CompiledQuery]) -> None:
        """Choose the knowledge that the FROM clauses of these queries name; the queries that run already must agree."""
        running = tuple(query for query in queries if query.name in self.names)
        new = tuple(query for query in queries if query.name not in self.names)
        if new:
            others = [Compilation(running)] if running else []
            self.knowledge = choose(self.knowledge, Compilation(new), others, self.changes)

    def plan(
        self,
        queries: Sequence[CompiledQuery],
        *,
        started: bool,
        lowered: ir.Rules | None = None,
        gathered: GatheredQueries | None = None,
    ) -> None:
        """Make the rules; ``lowered`` are the rules without a background, if they have been made already."""
        running, before, ran = () if self.gathered is None else self.gathered.groups, self._last, self.rules
        self.queries, self.gathered = tuple(queries), None
        self.rules = self._compiled(lowered, gathered)
        while not started and self._derive_background():
            self.rules = self._compiled(None, gathered)
        self._check_events()
        if started:
            self._check_goals(ran)
        if started and gathered is not None:
            wanted = {group.name for group in gathered.groups}
            self._check_families([group for group in running if group.name in wanted], before)

    def _check_events(self) -> None:
        """Refuse EVENT beside an answer-set program that reads events."""
        if getattr(self.knowledge, "programs", ()) and event_patterns(node for _, node in self.rules.nodes):
            raise ValueError(
                "a query has EVENT, and the background holds an answer-set program that reads events: what it offers "
                "belongs to no event; leave one of the two out, or ask for single triples without EVENT"
            )

    def _check_goals(self, ran: ir.Rules) -> None:
        """Refuse an added rule that derives events after their end, if queries that run would lose their goals by it.

        What decides in time leaves such events out, and a bound keeps goals longer beside them: these are other nodes.
        """
        before = {output.query: made_for((output,), dict(ran.nodes)) for output in ran.outputs}
        nodes = dict(self.rules.nodes)
        for output in self.rules.outputs:
            now = made_for((output,), nodes)
            late = any(reads_stream(node) and (node.in_time or node.late) for node in map(nodes.__getitem__, now))
            kept = (name for name in before.get(output.query, ()) if keeps_state(ran.node(name)))
            if late and not set(now).issuperset(kept):
                raise ValueError(
                    f"what an added rule derives after its end changes what {output.query}, which runs already, has to "
                    "remember: let both run from the start, or derive it under another predicate"
                )

    def _check_families(self, running: Iterable[QueryFamily], before: KnowledgeSummary) -> None:
        """Refuse rules that would make queries that ran together lose goals that each would keep on its own."""
        together = () if self.gathered is None else {group.name for group in self.gathered.groups}
        for group in running:
            if group.name in together or not group.members:
                continue
            sample = Compilation(tuple(query for _, query in group.compiled(1)))
            kept, there = (dict(rules_of(sample, summary).nodes) for summary in (before, self._summary()))
            if any(name in there and keeps_state(node) for name, node in kept.items()):
                raise ValueError(
                    f"beside this background the queries that are worded like {group.members[0][0]} no longer run "
                    "together, and their goals are for all of them; make the engine with Engine(…, changes=True), so "
                    "that they run one by one from the start"
                )

    def learn(self, graph: str, add: Sequence[Any], remove: Sequence[Any]) -> tuple[Any, bool]:
        """Change the knowledge; returns what changed, and whether that gives other rules."""
        before = self.knowledge.schema_version
        change = self.knowledge.update(graph, add, remove)
        return change, self.knowledge.schema_version != before or not self._there() <= self.vocabulary

    def check(self, graph: str, add: Sequence[Any], remove: Sequence[Any], *, started: bool) -> None:
        """Raise an error if no rules follow from the background after this change, which is not made."""
        changed = [*add, *remove]
        if {p for _, p, _ in changed} <= self.vocabulary and not any(
            _OF_SCHEMA(p) or _OF_SCHEMA(o) for _, p, o in changed
        ):
            return  # instances alone give no other rules
        before = self.knowledge.snapshot()
        try:
            trial = replace(self)
            if trial.learn(graph, add, remove)[1]:
                trial.plan(self.queries, started=started, gathered=self.gathered)
        finally:
            self.knowledge.restore(before)

    def gone(self) -> list[str]:
        """The predicates that the background no longer has, in order."""
        return sorted(self.vocabulary - self._there())

    def expect(self, gone: Iterable[str]) -> bool:
        """Expect these predicates beside those of the background; returns whether that gives other rules."""
        before, self.vocabulary = self.vocabulary, self._there() | frozenset(gone)
        return self.vocabulary != before

    def _there(self) -> frozenset[str]:
        """The predicates that the background has now."""
        return frozenset() if self.knowledge is None else frozenset(self.knowledge.default.predicates())

    def _summary(self) -> KnowledgeSummary:
        if self.knowledge is None:
            return KnowledgeSummary()
        return replace(compiler_summary(self.knowledge, self.changes), predicates=self.vocabulary | self._there())

    def _compiled(self, lowered: ir.Rules | None, gathered: GatheredQueries | None) -> ir.Rules:
        rules = self._rules_of(lowered, gathered)
        return reporting_nodes(rules) if self.nodes else rules

    def _rules_of(self, lowered: ir.Rules | None, gathered: GatheredQueries | None) -> ir.Rules:
        if lowered is not None and self.knowledge is None:
            return lowered
        self._last = summary = NO_KNOWLEDGE if self.knowledge is None else self._summary()
        self.vocabulary |= self._there()
        derived = owl_queries(self.knowledge) if self.queries else ()
        if gathered is not None and (rules := self._of_families(gathered.beside(summary), summary, derived)):
            return rules
        if gathered is not None:
            self.queries = gathered.queries
        queries = list(self.queries)
        if derived:
            kept = needed(rules_of(Compilation((*queries, *derived)), summary))
            queries += [query for query in derived if query.name in kept]
        return rules_of(Compilation(tuple(queries)), summary)

    def _of_families(
        self, gathered: GatheredQueries, summary: KnowledgeSummary, derived: Sequence[CompiledQuery]
    ) -> ir.Rules | None:
        """The rules with families; None if they can only be ordered query by query."""
        if derived:
            rules = gathered.with_hidden(derived).rules(_POLICY, summary)
            kept = frozenset() if rules is None else needed(rules)
            gathered = gathered.with_hidden([query for query in derived if query.name in kept])
        rules = gathered.rules(_POLICY, summary)
        if rules is not None:
            self.gathered = gathered
        return rules

    # --- before the stream ---

    def _derive_background(self) -> bool:
        """Add to the background what CONSTRUCTs over it alone derive; returns whether any of that is new."""
        grew = False
        for output in self.rules.outputs:
            # The closure of the background already has the conclusions of hidden rules.
            if output.form != "construct" or output.timeless is None or output.query.startswith(HIDDEN):
                continue
            if self.knowledge is None:
                self.knowledge = load((), entailment="rdfs")
            grew |= self._derive(output, output.timeless)
        return grew

    def _derive(self, output: ir.Output, timeless: alg.Pattern) -> bool:
        prepared = prepare(timeless)
        names = tuple(sorted(alg.scope(timeless)))
        new = making(output, names, self.makers)
        make = template_triples(
            output, names, None if new is None else lambda row: dict(zip(new.labels, new.fresh(row), strict=True))
        )
        grew = False
        derived = 0
        for _ in range(self.limits.rounds):
            source = BackgroundSource(self.knowledge, self.limits.steps)
            rows = [
                (TIMELESS_END, TIMELESS_START, *(mu.get(n, "") for n in names))
                for mu, _, _ in prepared.solve({}, source, None)
            ]
            applied = rows if new is None else new.applied(rows)
            triples = {t for row in applied for t in make(row)}
            missing = [t for t in triples if not self.knowledge.default.contains(*t)]
            if not missing:
                return grew
            self.knowledge.update("", missing, ())
            grew = True
            derived += len(missing)
            if derived > self.limits.derivations:
                break
        raise LimitExceeded(
            f"query {output.query} derived {derived} triples from the background and has not come to an end; make it "
            "derive finitely many triples, or raise Limits(rounds=…, derivations=…)"
        )


def reporting_nodes(rules: ir.Rules) -> ir.Rules:
    """The rules, with a query for each node, of the node's name."""
    nodes = tuple(
        ir.Output(name, "select", ir.Ref(name, node.head), timeless=None, variables=node.head)
        for name, node in rules.nodes
    )
    strata = tuple((output_id(output.query),) for output in nodes)
    return replace(rules, outputs=(*rules.outputs, *nodes), strata=(*rules.strata, *strata))


def knowledge_of(
    background: Any,
    entailment: str,
    named: Any = None,
    limits: Limits = LIMITS,
    prefixes: Callable[[], Mapping[str, str]] = dict,
) -> Any:
    """The background as given, or loaded from what is given, tables included; None if there is none.

    ``prefixes`` makes those of the queries, by which tables are read.
    """
    if background is None and not named:
        return None
    from etalis_py.streams.reference import with_tables  # an engine without a background needs no tables

    background = with_tables(background, prefixes)
    named = {graph: with_tables(content, prefixes) for graph, content in named.items()} if named else named
    if named and hasattr(background, "default"):
        raise ValueError("named graphs are loaded with the background: give what load(…, named=…) makes, alone")
    if hasattr(background, "default"):
        return background
    return load(() if background is None else background, entailment=entailment, named=named, limits=limits)
