"""Many queries of few kinds: texts that differ only in constants are compiled once.

``gather`` has texts sorted into families (``etalis_compiler.families.gathering``) and keeps of each text but one of a
family only a row of constants.  The result is a ``Compilation`` like any other: its ``queries`` are all of them, each
compiled by itself.  An ``Engine`` takes the families as they are if it can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from operator import itemgetter
from typing import Any, overload

from etalis_compiler import ast
from etalis_compiler.diagnostics import Diagnostic, QueryError, Source
from etalis_compiler.families import FamilyTemplate, wording_of
from etalis_compiler.families.gathering import CompileOptions, FamilyText, sort_into_families
from etalis_compiler.families.parameters import NoParameters
from etalis_compiler.knowledge import NO_KNOWLEDGE, KnowledgeSummary
from etalis_compiler.parser import parse
from etalis_compiler.pipeline import Compilation, CompiledQuery, compile_documents, link, rules_of
from etalis_compiler.stratify import expects_late_events
from etalis_rules import program as ir

from etalis_py.executors.rows.run.family_relation import Families, Family, Gathered, Member, RelationRows, member

FEWEST = 4
"""The least number of texts of one wording in a program that are compiled as one: from here on an event costs less than
if each ran by itself (``benchmarks.many_queries``)."""
ALIKE = FEWEST
"""The number of texts of one wording, added to an engine one by one, at which the last one starts a family."""


@dataclass(frozen=True, slots=True)
class QueryFamily:
    """The queries of a program that one template stands for; ``policy`` applies if the query names none."""

    template: FamilyTemplate
    members: Sequence[Member]
    policy: str
    plain: bool = True
    """Whether no base, prefixes or join order were given from outside when its texts were read."""

    @property
    def query(self) -> CompiledQuery:
        """The query that stands for all."""
        query = self.template.query
        return replace(query, syntax=replace(query.syntax, policy=query.syntax.policy or self.policy))

    @property
    def name(self) -> str:
        """The name of the family; it includes the policy, since other goals are kept under another one."""
        return self.name_by(self.policy)

    def name_by(self, policy: str) -> str:
        """Its name if this policy applies where the query names none."""
        return f"{self.template.name} {self.template.query.syntax.policy or policy}"

    def rules(self, knowledge: KnowledgeSummary = NO_KNOWLEDGE) -> tuple[dict[str, ir.Node], ir.Output]:
        """The nodes and the output for all queries together."""
        rules = self.template.rules(self.name, self.policy, knowledge)
        return rules.nodes, rules.output

    def __str__(self) -> str:
        """How many queries it has, and which."""
        names = [row[0] for row in self.members]
        few = ", ".join(names) if len(names) < 5 else f"{names[0]}, {names[1]}, … {names[-1]}"
        return f"{names[0]} stands for {len(names):,} queries that differ in constants only: {few}"

    def about_all(self, warning: Diagnostic) -> Diagnostic:
        """A warning about one of its texts, as one about all."""
        source = "<query>" if warning.source == self.name else warning.source
        text = f"{warning.message} ({self})" if len(self.members) > 1 else warning.message
        return replace(warning, source=source, message=text)

    def moved(self, by: int, policy: str) -> QueryFamily:
        """The same after ``by`` other queries, run by this policy if the query names none."""
        return replace(self, members=self.rows(by), policy=policy)

    def rows(self, by: int) -> Sequence[Member]:
        """Its rows, after ``by`` other queries."""
        if not by:
            return self.members
        at = 1 + len(self.template.places)
        return tuple([(*row[:at], row[at] + by, *row[at + 1 :]) for row in self.members])

    def fits(self, knowledge: KnowledgeSummary = NO_KNOWLEDGE) -> bool:
        """Whether there are rules for all together, by this policy and with this background, however it changes."""
        try:
            self.rules(knowledge)
            if knowledge.changes:
                self.rules(replace(knowledge, predicates=None))
        except (QueryError, NoParameters):
            return False
        return True

    def compiled(self, most: int | None = None) -> Iterator[tuple[int, CompiledQuery]]:
        """Its queries, each compiled by itself, with their places in the program.

        If there are at most ``most``, they stand for all, and the name of their source is the family's.
        """
        shared = self.query
        for row, (place, name, text) in islice(zip(self.members, self.texts(), strict=True), most):
            document = parse(text.text, base=shared.base, prefixes=dict(shared.prefixes))
            text = text if most is None else replace(text, name=self.name)
            (query,) = compile_documents([(document, text)], shared.coupling).queries
            policy = query.syntax.policy or self.policy
            syntax = replace(query.syntax, policy=policy)
            yield place, replace(query, name=name, syntax=syntax, identity=row[-1])

    def texts(self) -> Iterator[tuple[int, str, Source]]:
        """The place in the program, the name and the text of each query."""
        count = len(self.template.places)
        for row in self.members:
            yield row[1 + count], row[0], Source(self.template.text_of(row[0], row[1 : 1 + count]))

    def documents(self, reading: CompileOptions) -> Iterator[tuple[int, tuple[ast.Document, Source]]]:
        """The place of each query, and its syntax and text, as of a file with its name; it keeps its identity."""
        for row, (place, name, text) in zip(self.members, self.texts(), strict=True):
            document = reading.document(text)
            queries = tuple(replace(query, identity=row[-1]) for query in document.queries)
            yield place, (replace(document, queries=queries), replace(text, name=f"{name}.rq"))


def one_by_one(queries: Iterable[CompiledQuery]) -> tuple[str, ...]:
    """The note on queries that are alike but run one by one."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for query in queries:
        wording = wording_of(replace(query.source, text=query.text))
        if wording is not None:
            alike.setdefault(wording.pieces, []).append(query.name)
    some = [names for names in alike.values() if len(names) >= FEWEST]
    return tuple(f"{names[0]} and {len(names) - 1:,} that are worded like it run one by one" for names in some)


class GatheredQueries(Compilation):
    """A compilation in which many queries exist only as rows of constants.

    ``rest`` are the queries that are compiled by themselves, ``places`` their places in the program.
    """

    __slots__ = ("_expanded", "_size", "groups", "places", "rest")

    def __init__(
        self,
        rest: Sequence[CompiledQuery],
        places: Sequence[int],
        groups: Sequence[QueryFamily],
        warnings: tuple[Diagnostic, ...] = (),
        size: int | None = None,
    ) -> None:
        """``size`` is the number of places taken, including those of queries that are gone."""
        for name, value in (
            ("rest", tuple(rest)),
            ("places", tuple(places)),
            ("groups", tuple(groups)),
            ("warnings", warnings),
            ("_expanded", None),
            ("_size", size),
        ):
            object.__setattr__(self, name, value)

    rest: tuple[CompiledQuery, ...]
    places: tuple[int, ...]
    groups: tuple[QueryFamily, ...]
    _expanded: tuple[CompiledQuery, ...] | None
    _size: int | None

    @property
    def size(self) -> int:
        """The number of places taken."""
        return sum((len(g.members) for g in self.groups), len(self.rest)) if self._size is None else self._size

    def without(self, gone: frozenset[str]) -> GatheredQueries:
        """The same without these queries, none of which is a row of a running family; the others stay in place."""
        alone = [(q, place) for q, place in zip(self.rest, self.places, strict=True) if q.name not in gone]
        left = gone.difference(query.name for query in self.rest)
        groups = []
        for group in self.groups:
            members = group.members
            if left and not isinstance(members, RelationRows):
                members = tuple([row for row in members if row[0] not in left])
            groups += [replace(group, members=members)] if len(members) else []
        return GatheredQueries([q for q, _ in alone], [p for _, p in alone], groups, self.warnings, self.size)

    def running(self, families: Families) -> GatheredQueries:
        """The same while these families run: the members are always those that run at the moment."""
        there = families.relations
        groups = [replace(g, members=RelationRows(there[g.name])) if g.name in there else g for g in self.groups]
        return GatheredQueries(self.rest, self.places, groups, self.warnings, self.size)

    def sized(self, size: int) -> GatheredQueries:
        """The same with ``size`` places taken; families with no query running any more are left out."""
        groups = [group for group in self.groups if len(group.members)]
        return GatheredQueries(self.rest, self.places, groups, self.warnings, size)

    def run_by(self, policy: str) -> GatheredQueries:
        """The same, with a policy for queries that name none; queries that are no family under it run one by one."""
        groups = [group.moved(0, policy) for group in self.groups]
        fits = [group.policy == policy for group in self.groups]
        return self._with(groups, [same or group.fits() for same, group in zip(fits, groups, strict=True)])

    def beside(self, knowledge: KnowledgeSummary) -> GatheredQueries:
        """The same with this background; queries that are no family with it run one by one."""
        if knowledge is NO_KNOWLEDGE:
            return self
        return self._with(self.groups, [group.fits(knowledge) for group in self.groups])

    def _with(self, groups: Sequence[QueryFamily], fits: Sequence[bool]) -> GatheredQueries:
        """The same with those of the groups that fit; the queries of the others run one by one."""
        alone = list(zip(self.places, self.rest, strict=True))
        for group, fit in zip(groups, fits, strict=True):
            alone += () if fit else group.compiled()
        alone.sort(key=itemgetter(0))
        rest, places = [q for _, q in alone], [place for place, _ in alone]
        kept = [group for group, fit in zip(groups, fits, strict=True) if fit]
        return GatheredQueries(rest, places, kept, self.warnings, self.size)

    def with_hidden(self, queries: Sequence[CompiledQuery]) -> GatheredQueries:
        """The same with queries that only feed others: their reports have no place in the program."""
        places = [-len(self.groups) - 1 - i for i in range(len(queries))]
        return GatheredQueries((*self.rest, *queries), (*self.places, *places), self.groups, self.warnings, self.size)

    @property
    def kinds(self) -> tuple[CompiledQuery, ...]:
        """The queries that are compiled by themselves, and one for each family."""
        return (*self.rest, *(group.query for group in self.groups))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the queries, in the order of the program."""
        named = [(place, query.name) for place, query in zip(self.places, self.rest, strict=True)]
        for group in self.groups:
            count = len(group.template.places)
            named += [(row[1 + count], row[0]) for row in group.members]
        return tuple(name for _, name in sorted(named))

    @property
    def queries(self) -> tuple[CompiledQuery, ...]:
        """All queries, each compiled by itself, on demand."""
        if self._expanded is None:
            object.__setattr__(self, "_expanded", self._compiled(None))
        return self._expanded or ()

    @property
    def samples(self) -> Compilation:
        """The queries that are compiled by themselves, and the first of each family, with its name for a source."""
        return Compilation(self._compiled(1), self.warnings)

    def _compiled(self, most: int | None) -> tuple[CompiledQuery, ...]:
        """The queries, with at most ``most`` of each family."""
        every = list(zip(self.places, self.rest, strict=True))
        for group in self.groups:
            every += group.compiled(most)
        return tuple(query for _, query in sorted(every, key=itemgetter(0)))

    @property
    def families(self) -> Gathered:
        """The families in the form that an executor takes."""
        families = (Family(g.name, g.template.is_numeric, g.members) for g in self.groups)
        return Gathered(tuple(families), self.places)

    def rules(self, policy: str, knowledge: KnowledgeSummary = NO_KNOWLEDGE) -> ir.Rules | None:
        """The rules of all queries, those of a family as one; None if they can only be ordered query by query."""
        try:
            alone = rules_of(Compilation(self.rest), knowledge, policy)
            nodes, outputs = dict(alone.nodes), list(alone.outputs)
            for group in self.groups:
                shared, output = group.rules(knowledge)
                nodes |= shared
                outputs.append(output)
            if not expects_late_events(nodes, outputs):
                return None
            return link(nodes, outputs, Compilation(self.kinds), policy)
        except (QueryError, NoParameters):
            return None


def join_families(parts: Iterable[tuple[Compilation, str]]) -> GatheredQueries:
    """Several compilations as one, each with its policy."""
    rest: list[CompiledQuery] = []
    places: list[int] = []
    groups: dict[str, tuple[QueryFamily, list[Sequence[Member]]]] = {}
    warnings: list[Diagnostic] = []
    before = 0
    for part, policy in parts:
        gathered = part if isinstance(part, GatheredQueries) else GatheredQueries(part.queries, (), ())
        queries, some = gathered.rest, gathered.groups
        at = gathered.places if gathered is part else range(len(queries))
        rest += (replace(q, syntax=replace(q.syntax, policy=q.syntax.policy or policy)) for q in queries)
        places += (before + place for place in at)
        size = len(queries)
        for group in some:
            known = groups.setdefault(group.name, (group, []))
            known[1].append(group.rows(before))
        before += gathered.size if gathered is part else size
        warnings += part.warnings
    every = []
    for group, rows in groups.values():
        # A family without anything new keeps the very same object for its rows, which shows that nothing needs
        # comparing.
        every.append(replace(group, members=rows[0] if len(rows) == 1 else tuple(chain.from_iterable(rows))))
    return GatheredQueries(rest, places, every, tuple(warnings), before)


class ParsedTexts(Sequence[tuple[ast.Document, Source]]):
    """The texts of a program with their syntax, parsed on demand."""

    def __init__(self, make: Callable[[], Iterable[tuple[ast.Document, Source]]]) -> None:
        self._make = make
        self._documents: tuple[tuple[ast.Document, Source], ...] | None = None

    def _all(self) -> tuple[tuple[ast.Document, Source], ...]:
        if self._documents is None:
            self._documents = tuple(self._make())
        return self._documents

    @overload
    def __getitem__(self, index: int) -> tuple[ast.Document, Source]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[ast.Document, Source]]: ...
    def __getitem__(self, index: Any) -> Any:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all())


# --- making families -----------------------------------------------------------------------------------------------


def gather(
    texts: Sequence[Source], reading: CompileOptions, fewest: int | None = None
) -> tuple[GatheredQueries, ParsedTexts] | None:
    """The compilation of texts many of which are alike; None if none are, or if some have windows.

    ``fewest``: the least size of a family, instead of ``FEWEST``.
    """
    found = sort_into_families(texts, reading, FEWEST if fewest is None else fewest)
    if found is None:
        return None
    groups = [
        QueryFamily(template, _rows(template, members), reading.policy, reading.plain)
        for template, members in found.families
    ]
    alone = compile_documents(found.rest, reading.coupling)
    warnings = [*alone.warnings]
    warnings += (group.about_all(warning) for group in groups for warning in group.template.warnings)
    compilation = GatheredQueries(alone.queries, found.places, groups, tuple(warnings))
    if compilation.rules(reading.policy) is None:
        return None

    def every() -> Iterable[tuple[ast.Document, Source]]:
        texts = []
        before = 0
        for document, text in found.rest:
            texts.append((found.places[before], (document, text)))
            before += len(document.queries)
        for group in groups:
            texts += group.documents(reading)
        return [one for _, one in sorted(texts, key=itemgetter(0))]

    return compilation, ParsedTexts(every)


def _rows(template: FamilyTemplate, members: Iterable[FamilyText]) -> tuple[Member, ...]:
    return tuple([member(*text[:3], template.is_numeric, text.identity) for text in members])


__all__ = [
    "GatheredQueries",
    "Member",
    "ParsedTexts",
    "QueryFamily",
    "gather",
    "join_families",
    "member",
    "one_by_one",
]
