"""The engine: programs in any mixture of EP-SPARQL, RSP-QL and RSEP-QL over a stream of events.

It plans which executor runs what (``_load``) and hands the events to the kernel, which knows no executor by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from etalis_compiler.families import wording_of
from etalis_compiler.rsp import Circle, Fact, WindowPlan
from etalis_rules import program as ir

from etalis_py.engine.family_index import FamilyIndex
from etalis_py.engine.program import Given, Program, Text, declared_prefixes, family_of, program_from, source_of
from etalis_py.engine.query_families import ALIKE, GatheredQueries, Member, QueryFamily, join_families
from etalis_py.engine.rule_plans import RulePlan, knowledge_of
from etalis_py.engine.snapshots import Snapshots
from etalis_py.engine.stage_plans import (
    Carried,
    carry_over,
    check_windows,
    entailed_by,
    groups_of,
    merge_programs,
    numbered_stages,
    reporting_plans,
    rule_executor,
    window_executor,
    with_policy,
)
from etalis_py.engine.summary import summary, warn_of_missed_start
from etalis_py.engine.taking import Taking
from etalis_py.engine.tie_order import in_tie_order
from etalis_py.executors.windows.refresh import TimeVarying, graph_name
from etalis_py.garbage import few_collections
from etalis_py.kernel.dataset import whole
from etalis_py.kernel.options import EngineOptions, options_of
from etalis_py.kernel.position import Position
from etalis_py.kernel.protocol import Executor, RuleExecutor, WindowedExecutor
from etalis_py.kernel.revision import Revision
from etalis_py.kernel.steps import Refused, refusals, step
from etalis_py.knowledge import Knowledge
from etalis_py.knowledge.triples import triples_of
from etalis_py.values.keywords import check_keywords

RuleStage = tuple[RulePlan, RuleExecutor]
Groups = list[tuple[str, list[str]]]


class Engine(Taking, Snapshots):
    """Evaluates programs over a stream of events.  Its options are those of ``Options``.

    >>> from etalis_py import Engine, event
    >>> engine = Engine("SELECT ?c WHERE { ?c :p ?x } SEQ { ?c :q ?y }")
    >>> len(engine.push(event("<urn:c> <http://example.org/p> 1", 1)))
    0
    >>> engine.push(event("<urn:c> <http://example.org/q> 2", 2)); engine.close()
    []
    [<q1 [1, 2] ?c=<urn:c>>]

    A windowed query answers once time has passed one of its evaluation times:

    >>> engine = Engine("SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?x :p ?y } }")
    >>> engine.push(event("<urn:a> :p 1", 3)), engine.push(event("<urn:b> :p 1", 11))
    ([], [<q1 [0, 5] ?x=<urn:a>>])
    >>> engine.close()
    [<q1 [10, 15] ?x=<urn:b>>]
    """

    def __init__(self, program: Given | None = None, **options: Unpack[EngineOptions]) -> None:
        check_keywords("Engine", options, EngineOptions.__annotations__)
        program, given = in_tie_order(program, options_of(options))
        render = self._showing(given.render)
        # With a horizon the journal is the input, so executors need not keep one.
        super().__init__(replace(given, journal=given.journal and not given.revise, render=render))
        self._journals = given.journal
        prefixes = partial(declared_prefixes, program)
        self.knowledge: Any = knowledge_of(given.background, given.entailment, given.named, given.limits, prefixes)
        self.programs: dict[str, Program] = {}
        self.updates: list[tuple[int, str, list[Any], list[Any]]] = []  # background updates for the journal
        self._graphs: TimeVarying | None = None
        self._registry: FamilyIndex | None = None
        self._highest = 0  # highest number in the name of a program
        self._whole: Program | None = None  # all programs as one, where there are families
        self._alike: Counter[int] = Counter()  # how many texts of a wording have been added
        self._given = self.knowledge is not None
        self._rule_stages: list[RuleStage] = []
        self._windows: list[WindowedExecutor] = []
        if program is not None:
            self.add(program)
        else:
            self._load()
        if given.revise:
            self._revision = Revision(self, given.revise, given.lateness, journal=given.journal)
            self._settle()

    # --- programs ---

    @step
    def add(self, program: Given, *, policy: str | None = None, name: str | None = None) -> str:
        """Add a program while the engine runs; returns the id to give to ``remove``."""
        identifier = name or self._free_name()
        with refusals():
            if identifier in self.programs:
                taken = f"there is a program named {identifier} already; remove it first or choose another name"
                raise ValueError(taken)
            found = self._family_of(program, policy)
            added = self._may_run(program) if found is None else None
        self._replanning = True
        if found is not None:
            self._add_to_family(found, identifier)
        if added is not None:
            self._add(added, policy, identifier)
        self._replanning = False
        warn_of_missed_start(self.programs[identifier], self._at)
        return identifier

    def _may_run(self, program: Given) -> Program:
        """The program, if it may run beside the others."""
        added = self._compiled(program)
        clash = sorted(query for query in added.queries if self._runs(query))
        if clash:
            raise _running_already(clash)
        check_windows(added, self.options)
        return added

    def _add(self, added: Program, policy: str | None, identifier: str) -> None:
        """Plan again, with one more program; if that fails, without it."""
        self._set_aside()
        chosen = policy or self.options.policy or added.policy
        self.programs[identifier] = replace(added, policy=chosen)
        if isinstance(added.compilation, GatheredQueries):
            compilation = added.compilation.run_by(chosen)
            self.programs[identifier] = replace(self.programs[identifier], compilation=compilation)
        knowledge, plans = self.knowledge, [(plan, plan.knowledge, plan.queries) for plan, _ in self._rule_stages]
        try:
            self._load(self.programs[identifier])
        except MemoryError:
            raise
        except Exception as error:
            del self.programs[identifier]
            self.knowledge = knowledge
            for plan, seen, queries in plans:
                plan.knowledge, plan.queries = seen, queries
            self._load()
            self._replanning = False
            raise Refused(error) from None
        self._know_prefixes(added.prefixes, alone=len(self.programs) == 1)
        if self._at.started:
            for _, executor in self._rule_stages:
                executor.report_timeless(self._at.now, frozenset(added.queries))
            for number, stage in enumerate(self._stages):
                self._collect(number, stage)
        if self._revision is not None:
            self._revision.restart()

    def _free_name(self) -> str:
        """A name for one more program that no running program named here has."""
        number = len(self.programs) + 1
        if f"program{number}" in self.programs:
            number = self._highest + 1
            while f"program{number}" in self.programs:
                number += 1
        self._highest = max(self._highest, number)
        return f"program{number}"

    @step
    def remove(self, identifier: str) -> None:
        """Stop a program: its goals and windows are dropped, goals that it shares with others stay."""
        if identifier not in self.programs:
            raise Refused(KeyError(f"no program {identifier}; running: {', '.join(self.programs) or 'none'}"))
        self._replanning = True
        self._remove(identifier)
        self._replanning = False

    def _remove(self, identifier: str) -> None:
        removed = self.programs[identifier]
        others = self._stop_rows(removed)
        if others == frozenset():
            del self.programs[identifier]
            return
        self._set_aside()
        self._at.answered.difference_update(removed.queries)
        del self.programs[identifier]
        if others is None:
            self._whole = None
        elif self._whole is not None:
            assert isinstance(self._whole.compilation, GatheredQueries)
            self._whole = replace(self._whole, compilation=self._whole.compilation.without(others))
        self._load()
        if self._revision is not None:
            self._revision.restart()

    def knows(self, text: Text) -> bool:
        """Whether a running query differs from this text only in constants, so that adding it compiles nothing."""
        if self._registry is None or self._revision is not None:
            return False
        return self._registry.find(source_of(text), self.options.policy or "unrestricted") is not None

    def _runs(self, query: str) -> bool:
        """Whether there is a query of this name already."""
        if self._registry is None:
            return any(query in other.queries for other in self.programs.values())
        families = self._rule_stages[0][1].families
        return query in self._registry.rest or (families is not None and families.has(query))

    def _family_of(self, program: Given, policy: str | None) -> tuple[QueryFamily, Member, str] | None:
        """The family, row and policy of a text that differs from running queries only in constants."""
        if self._registry is None or self._revision is not None or not isinstance(program, Text):
            return None
        chosen = policy or self.options.policy or "unrestricted"
        found = self._registry.find(source_of(program), chosen)
        if found is None:
            return None
        family, row = found
        if self._runs(row[0]):
            raise _running_already([row[0]])
        return family, row, chosen

    def _add_to_family(self, found: tuple[QueryFamily, Member, str], identifier: str) -> None:
        """Add such a text: one more row, and nothing else changes."""
        assert self._registry is not None
        family, row, chosen = found
        self._rule_stages[0][1].add_to_family(family.name, row)
        self.programs[identifier] = Program(self._registry.add(family, row), chosen)

    def _stop_rows(self, program: Program) -> frozenset[str] | None:
        """Stop a program's queries that are rows of families; returns the others, None if there are no families."""
        if self._whole is None or self._revision is not None or program.windowed:
            return None
        families = self._rule_stages[0][1].families
        assert families is not None
        compilation = program.compilation
        others = set(compilation.names)
        for group in compilation.groups if isinstance(compilation, GatheredQueries) else ():
            relation = families.relations.get(group.name)
            if relation is None:
                continue  # the queries of this family run one by one
            for row in group.members:
                relation.remove(row[0])
                self._at.answered.discard(row[0])
                others.discard(row[0])
        return frozenset(others)

    def _compiled(self, program: Given) -> Program:
        """The program; a text starts a family if its like has been added often enough, or if families run already."""
        if isinstance(program, Text):
            text = source_of(program)
            wording = wording_of(text)
            kind = 0 if wording is None else hash(wording.pieces)
            self._alike[kind] += 1
            often = wording is not None and (self._alike[kind] >= ALIKE or self._whole is not None)
            if often and (begun := family_of(text, self.options.policy or "unrestricted")):
                return begun
        return program_from(program)

    @property
    def rules(self) -> ir.Rules:
        """The rules of the loaded EP-SPARQL queries."""
        return self._rule_stages[0][0].rules if self._rule_stages else ir.Rules((), (), ())

    @property
    def plans(self) -> tuple[WindowPlan, ...]:
        """The plans of the windowed queries, with the report policies that they were given."""
        return tuple(plan for executor in self._windows for plan in executor.plans)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is probably unintended, judging by the events so far."""
        executors = (*(executor for _, executor in self._rule_stages), *self._windows)
        return tuple(warning for executor in executors for warning in executor.warnings)

    @property
    def outputs(self) -> tuple[ir.Output, ...]:
        """The queries that report; rules added by the schema of the background are left out."""
        return tuple(shape.output for shape in self._shapes if not shape.hidden)

    @property
    def source(self) -> str:
        """The generated Python."""
        return "\n".join(executor.source for _, executor in self._rule_stages)

    @property
    def has_windows(self) -> bool:
        """Whether some query is evaluated over windows."""
        return bool(self._windows)

    def __repr__(self) -> str:
        """Its queries, its place in the stream and what it holds."""
        queries = [query for program in self.programs.values() for query in program.queries]
        return summary(queries, self._at, self.counters, self.render, self.has_windows)

    def _repr_html_(self) -> str:
        from etalis_py.notebook import engine_html  # notebooks only

        return engine_html(repr(self), self.programs.values())

    # --- planning ---

    def _load(self, added: Program | None = None) -> None:
        """Plan all programs as one; ``added`` is new.  The state of what stays is kept."""
        with few_collections():
            self._plan_all(self._together(added))

    def _plan_anew(self) -> None:
        self._whole = self._registry = self._graphs = None
        self._rule_stages, self._windows = [], []
        self._at = Position()
        self._load()

    def _plan_all(self, program: Program) -> None:
        """Arrange the executors and number their outputs, for all programs as one."""
        self._whole = None  # until everything has succeeded
        if program.windowed:
            knowledge, steps, groups = self._windowed(program)
        else:
            knowledge, steps, groups = self.knowledge, {}, [("rules", program.kinds)]
        rules = [frozenset(queries) for kind, queries in groups if kind == "rules"]
        carried = carry_over(rules, [(plan.names, executor) for plan, executor in self._rule_stages])
        rule_stages: list[RuleStage] = []
        windows: list[WindowedExecutor] = []
        executors: list[Executor] = []
        for kind, queries in groups:
            if kind == "rules":
                carry = carried[len(rule_stages)]
                rule_stages.append(self._rules_stage(program, queries, knowledge, carry))
                executors.append(rule_stages[-1][1])
            else:
                assert self._graphs is not None
                alone = not program.compilation.queries
                chosen = [steps[name] for name in queries]
                windows.append(window_executor(chosen, self._graphs, self.options, self.counters, alone=alone))
                windows[-1].go_on_from(self._windows)
                executors.append(windows[-1])
        self._rule_stages, self._windows = rule_stages, windows
        for executor in executors:
            executor.feeding = executor is not executors[-1]
        if not program.windowed:
            self._graphs = None
            self.knowledge = self._rule_stages[0][0].knowledge
        unnamed = program.unnamed if self.options.stream is None else self.options.stream
        lockstep = self._graphs is not None and bool(self._graphs.loaders)
        self._arrange(*numbered_stages(executors, program), unnamed=unnamed, lockstep=lockstep)
        if self._registry is not None and (families := rule_stages[0][1].families) is not None:
            assert isinstance(program.compilation, GatheredQueries)
            self._whole = replace(program, compilation=program.compilation.running(families))

    def _together(self, added: Program | None) -> Program:
        """All programs as one: those that run are taken as they are, so that nothing looks at each of their queries."""
        if self._whole is None or self._registry is None or (added is not None and added.windowed):
            return merge_programs(self.programs.values())
        assert isinstance(self._whole.compilation, GatheredQueries)
        whole = replace(self._whole, compilation=self._whole.compilation.sized(self._registry.size))
        return whole if added is None else merge_programs([whole, added])

    def _windowed(
        self, program: Program
    ) -> tuple[Knowledge, dict[str, WindowPlan | Fact], list[tuple[str, list[str]]]]:
        """The background of a program with windows, its windows and facts by name, and the stages of an instant."""
        options = self.options
        self.knowledge = knowledge = whole(self.knowledge) or Knowledge({}, options.entailment)
        graphs = TimeVarying(knowledge, program.plans, options.graphs, options.named, given=self._given)
        plans = reporting_plans(program.plans, options.report)
        if not options.changes:
            graphs.check(plans)
        try:
            stages = program.stages(entailed_by(knowledge))
        except Circle as circle:
            raise ValueError(
                f"{circle}, through what the background says of their vocabulary: let one of them make other "
                'predicates, or load the background with entailment="rdf"'
            ) from None
        if self._graphs is not None:
            graphs.go_on_from(self._graphs)
        self._graphs = graphs
        steps: dict[str, WindowPlan | Fact] = {plan.name: plan for plan in plans}
        return knowledge, steps | {fact.name: fact for fact in program.facts}, groups_of(stages)

    def _rules_stage(self, program: Program, names: Sequence[str], knowledge: Any, carry: Carried) -> RuleStage:
        """A stage for the EP-SPARQL queries of these names: one that ran before, or a new one."""
        gathered = self._gathered(program)
        given = program.compilation.queries if gathered is None else gathered.kinds
        wanted = set(names)
        queries = tuple(query for query in given if query.name in wanted or not program.windowed)
        if carry.place is None:
            plan = RulePlan(knowledge, self.options.changes, self.limits, nodes=self.options.nodes)
            executor = rule_executor(self.options, self.counters)
        else:
            plan, executor = self._rule_stages[carry.place]
        plan.choose(queries)
        alone = gathered is None and len(self.programs) == 1 and len(queries) == len(given)
        lowered = program.rules() if alone else None
        plan.plan(with_policy(queries, program.policy), started=self._at.started, lowered=lowered, gathered=gathered)
        nodes = {name for name, _ in executor.given.nodes}
        families = None if plan.gathered is None else plan.gathered.families
        self._registry = None if plan.gathered is None else FamilyIndex(plan.gathered)
        executor.load_rules(plan.rules, plan.knowledge, plan.makers, families)
        if carry.states:
            executor.adopt(carry.states, nodes)
        return plan, executor

    def _gathered(self, program: Program) -> GatheredQueries | None:
        """The program with its families, each query with its policy, if this engine may run them as families."""
        compilation = program.compilation
        alone = self.options.explain or self.options.nodes or self.options.ties is not None
        if not isinstance(compilation, GatheredQueries) or program.windowed or alone:
            return None
        return join_families([(compilation, program.policy)])

    # --- the background ---

    @step
    def update(
        self, graph: str = "", add: Iterable[Any] = (), remove: Iterable[Any] = (), *, at: int | None = None
    ) -> Any:
        """Change the background, by triples or by Turtle such as ``add=":acme a :Bank ."``.

        If rules run, the open instant is closed, and the new version holds from the next instant on; windows see it in
        the evaluations that are still to come.  A warning tells of goals without a place in the rules that follow.
        ``at``, in microseconds: the new version has held since the end of the instant at that time, which is then over,
        as after ``advance(at)``.  This needs ``Engine(…, revise=…)``; the next call reports what it changes.
        """
        with refusals():
            new, old = triples_of(add), triples_of(remove)
            self.check_change()
            name = graph if self._graphs is None else graph_name(graph)
            self.knowledge.check_update(name, new, old)
            if at is not None and self._revision is None:
                raise ValueError("an update in the past is a correction: make the engine with Engine(…, revise=…)")
            if self._rule_stages:
                self._rule_stages[0][0].check(name, new, old, started=self._at.started)
        if self._revision is not None:
            return self._revision.update(graph, new, old, at)
        return self.change(graph, new, old)

    def change_follows(self) -> int:
        """The instant that an update made now follows."""
        return self._at.now if self._rule_stages else self.closed_at

    def change(self, graph: str, add: list[Any], remove: list[Any]) -> Any:
        """The same as ``update``, from the next instant on."""
        at = self._at
        if self._rule_stages and at.pending:
            self._close_instant()
            at.closed = max(at.closed, at.now)
        return self.learn(graph if self._graphs is None else graph_name(graph), add, remove)

    def check_change(self) -> None:
        """Raise ``ValueError`` if the background of this engine cannot change."""
        if self.knowledge is None or (self._graphs is not None and not self._graphs.given):
            raise ValueError("this engine has no background to change: make it with Engine(…, background=[])")
        if len(self._rule_stages) > 1:
            raise ValueError(
                "the background of this program cannot change while it runs: its rules run in several stages, because "
                "windows feed some of them; run what feeds the windows and what they feed as two programs"
            )

    def learn(self, graph: str, add: list[Any], remove: list[Any]) -> Any:
        """Apply an update to the knowledge, the programs and, if it changes them, the rules."""
        self._replanning = True
        if self._rule_stages:
            change, other_rules = self._rule_stages[0][0].learn(graph, add, remove)
        else:
            change, other_rules = self.knowledge.update(graph, add, remove), False
        if self.options.journal:
            self.updates.append((change.version, graph, add, remove))
        self.renew(rules=other_rules)
        self._replanning = False
        return change

    def renew(self, *, rules: bool) -> None:
        """Adapt to another version of the background; ``rules``: it gives other rules."""
        for executor in self._executors:
            executor.renew()
        if not rules:
            return
        if self._graphs is None:
            self._set_aside()
            self._load()
            return
        for plan, executor in self._rule_stages:
            plan.plan(plan.queries, started=self._at.started)
            executor.load_rules(plan.rules, plan.knowledge, plan.makers)
        self._arrange(
            *numbered_stages([stage.executor for stage in self._stages], merge_programs(self.programs.values())),
            unnamed=self._unnamed,
            lockstep=self._lockstep,
        )


def _running_already(queries: Sequence[str]) -> ValueError:
    return ValueError(f"queries named {', '.join(queries)} are running already; rename them or REGISTER a name")


__all__ = ["Engine"]
