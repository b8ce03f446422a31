"""From a question and the facts to the report: blames over the whole plan, and counts at each of its nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, count

from etalis_rules import algebra as alg

from etalis_py.sparql.run import Solution
from etalis_py.values.term_likeness import NEAR, nearest, slip_of
from etalis_py.values.time import TIMELESS_END
from etalis_py.whynot.condition import PlanCondition
from etalis_py.whynot.conditions import conditions, of_node, without_conditions
from etalis_py.whynot.other_streams import NEAREST, listed, missing_graph
from etalis_py.whynot.question import fixed
from etalis_py.whynot.refusal_margins import Measure, Measurer
from etalis_py.whynot.report import Blame, Count, Miss, Node
from etalis_py.whynot.search import FirstSolutions, Keep, Search
from etalis_py.whynot.titles import Titles

PAIRS = 12  # conditions of which all pairs are tried; beyond that, only those that may be to blame without a slip
_SLIPS = frozenset({"key", "term"})
_SAYING = frozenset({"absence", "column"})  # conditions without marks that nevertheless say what refuses


def split_filters(pattern: alg.Pattern) -> alg.Pattern:
    """The pattern with one Filter for each conjunct, so that the plan shows how many solutions each one leaves."""
    children = tuple(split_filters(child) for child in alg.children(pattern))
    _, conditions = alg.unfiltered(pattern)
    if not conditions:
        return pattern if alg.is_opaque(pattern) else alg.with_children(pattern, children)
    result = children[0]
    for condition in conditions:
        result = alg.Filter(result, (condition,))
    return result


Refused = tuple[Solution, tuple[Measure, ...]]
"""A solution, and by how much each condition refused it."""


@dataclass(frozen=True, slots=True)
class Explainer:
    """Explains one question over one stream."""

    search: Search
    titles: Titles
    measurer: Measurer

    # --- blames ---

    def blames(self, plan: alg.Pattern) -> tuple[Blame, ...]:
        """The conditions that alone refuse answers; if none does, the pairs of conditions that do."""
        asked = [blame for blame in map(self._asked_wrongly, range(len(self.search.question.where))) if blame]
        every = conditions(plan, self.titles)
        alone = [*asked, *self._merged(self._blame(plan, (condition,)) for condition in every)]
        if not alone:
            some = every if len(every) <= PAIRS else [c for c in every if c.kind not in _SLIPS][:PAIRS]
            pairs = (pair for pair in combinations(some, 2) if pair[0].about is not pair[1].about)
            alone = [blame for blame in self._merged(self._blame(plan, pair) for pair in pairs) if blame.likely]
        return tuple(sorted(alone, key=lambda b: (not b.likely, not b.slip, b.kinds == ("term",), b.refused)))

    def _asked_wrongly(self, i: int) -> Blame | None:
        """The blame if the term asked for is a slip of one that has answers."""
        question = self.search.question
        rest = question.where[:i] + question.where[i + 1 :]
        search = replace(self.search, question=replace(question, where=rest))
        for name, term in fixed(question.where[i : i + 1]).items():
            if any(term in self._values(name, leaf) for leaf in _leaves(question.plan)):
                continue
            solutions = search.wanted(question.plan, at_end=True).solutions
            values = Counter(mu[name] for mu, _, _ in solutions if name in mu)
            has = "matches"
            if not values:
                values = sum((self._values(name, leaf) for leaf in _leaves(question.plan)), Counter())
                has = "events"
            slip = slip_of(term, values)
            if slip is not None:
                other, difference = slip
                text = f"?{name} = {self.titles.term(other)} has {has}: {difference.text}"
                miss = Miss("", (text,), {name: other}, None)
                asked = f"what was asked for: {self.titles.expression(question.where[i])}"
                return Blame(("where",), (asked,), values[other], True, (miss,), slip=True)
        return None

    def _values(self, name: str, leaf: alg.Pattern) -> Counter[str]:
        """The terms that a variable has in a leaf of the plan."""
        return Counter(mu[name] for mu, _, _ in self.search.all(leaf).solutions if name in mu)

    def _merged(self, blames: Iterable[Blame | None]) -> list[Blame]:
        """Blames with one text for each condition, as a differing key is seen from both of its sides."""
        merged: dict[tuple[tuple[str, ...], tuple[str, ...]], Blame] = {}
        for blame in blames:
            if blame is None:
                continue
            name = blame.kinds, blame.conditions
            known = merged.get(name)
            if known is None or (not known.likely and blame.likely):
                merged[name] = blame
        return list(merged.values())

    def _blame(self, plan: alg.Pattern, some: tuple[PlanCondition, ...]) -> Blame | None:
        relaxed = without_conditions(plan, some)
        unmarked = all(not c.marks for c in some)
        keep = self._beyond(plan, some, alg.scope(relaxed)) if unmarked else self._refused(some, len(some))
        sample = self.search.wanted(relaxed, at_end=True, keep=keep)
        if not sample.number:
            return None
        refused = sorted(sample.solutions, key=_distance)
        slip = any(m.slip for m in refused[0][1])
        likely = all(m.slip or c.kind not in _SLIPS for c, m in zip(some, refused[0][1], strict=True))
        titles = tuple(self._title(c) for c in some)
        alike = [(s, m) for s, m in refused if any(x.slip for x in m)] or refused
        misses = tuple(_different(self.miss(s, m, plan) for s, m in alike))
        return Blame(tuple(c.kind for c in some), titles, sample.number, sample.complete, misses, likely, slip)

    def _title(self, condition: PlanCondition) -> str:
        if condition.kind == "key":
            return f"the same {condition.text} in both parts"
        if condition.kind == "term":
            triple = condition.about[2:]
            return f"{condition.text} in {self.titles.triple(triple[0])}" if triple else condition.text
        return condition.text

    def _refused(self, some: tuple[PlanCondition, ...], least: int = 1) -> Keep:
        """A solution with the measures of the conditions that refused it, if there are at least ``least``."""

        def keep(solution: Solution) -> Refused | None:
            measures = (self.measurer.measure(condition, solution) for condition in some)
            refusing = tuple(m for m in measures if m is not None)
            return (solution, refusing) if len(refusing) >= least else None

        return keep

    def _beyond(self, plan: alg.Pattern, some: tuple[PlanCondition, ...], names: frozenset[str]) -> Keep:
        """A solution that the plan itself does not have, as far as ``names`` show: a column left out binds less."""
        known = Counter(_key(s, names) for s in self.search.wanted(plan, at_end=True).solutions)
        elsewhere = [text for c in some if c.kind == "stream" and (text := self._elsewhere(c.about))]
        other = Measure(elsewhere[0] if elsewhere else "it has solutions without it")

        def keep(solution: Solution) -> Refused | None:
            if known[key := _key(solution, names)]:
                known[key] -= 1
                return None
            blocked = (self.measurer.measure(c, solution) if c.kind in _SAYING else None for c in some)
            return solution, tuple(measure or other for measure in blocked)

        return keep

    def miss(self, solution: Solution, measures: Iterable[Measure], plan: alg.Pattern) -> Miss:
        """A refused solution for display: the variables of the plan, and by how much it failed."""
        mu, start, end = solution
        names = sorted(name for name in alg.scope(plan) if alg.is_visible(name) and mu.get(name))
        shown = ", ".join(f"?{name} = {self.titles.term(mu[name])}" for name in names)
        span = None if end == TIMELESS_END else (start, end)
        at = f" {self.measurer.shown(span)}" if span is not None else ""
        measures = tuple(measures)
        return Miss(
            (shown + at).strip(),
            tuple(m.text for m in measures),
            {name: mu[name] for name in names},
            None if span is None else (self.measurer.time(start), self.measurer.time(end)),
            tuple(m.data for m in measures),
        )

    # --- the plan ---

    def node(self, pattern: alg.Pattern, at_end: bool = True) -> Node:
        """The plan's tree from here on, with counts, and with the nearest misses where solutions end."""
        every = self.search.all(pattern)
        wanted = self.search.wanted(pattern, at_end=at_end)
        present = [part for part in alg.parts(pattern) if part.role is not alg.Role.ABSENT]
        below = [(part.pattern, part.last and at_end) for part in present]
        if len(triples := alg.one_by_one(pattern) or alg.columns_of_event(pattern)) > 1:
            below = [(triple, False) for triple in triples]
        parts = tuple(self.node(child, ends) for child, ends in below)
        optional = [part.role is alg.Role.OPTIONAL for part in present] or [False] * len(parts)
        met = all(part.wanted.number or alone for part, alone in zip(parts, optional, strict=True))
        broken = met and not wanted.number
        notes, misses = self._broken(pattern, at_end, every) if broken else ((), ())
        title = self.titles.pattern(pattern)
        return Node(
            title, _count(every), _count(wanted), (*parts, *self._inside(pattern)), broken, tuple(notes), tuple(misses)
        )

    def _inside(self, pattern: alg.Pattern) -> Iterator[Node]:
        """The pattern inside EXISTS or NOT, by itself."""
        for nothing in (part.pattern for part in alg.parts(pattern) if part.role is alg.Role.ABSENT):
            every, wanted = self.search.all(nothing), self.search.wanted(nothing, at_end=False)
            yield Node(f"inside: {self.titles.inner(nothing)}", _count(every), _count(wanted))
        for expression in alg.expressions(pattern):
            for asked in alg.patterns_of_exists(expression):
                every, wanted = self.search.all(asked), self.search.wanted(asked, at_end=False)
                yield Node(f"inside: {self.titles.inner(asked)}", _count(every), _count(wanted))

    def _broken(self, pattern: alg.Pattern, at_end: bool, every: FirstSolutions) -> tuple[list[str], list[Miss]]:
        notes = list(self._leaf_notes(pattern, every)) if not alg.children(pattern) else []
        own = _one_side(of_node(pattern, (), count(1), self.titles))
        own = tuple(c for c in own if c.kind not in ("term", "column"))
        if not own:
            return notes, []
        sample = self.search.wanted(without_conditions(pattern, own), at_end=at_end, keep=self._refused(own))
        refused = sorted(sample.solutions, key=lambda item: (len(item[1]), _distance(item)))
        return notes, list(_different(self.miss(s, m, pattern) for s, m in refused))

    def _leaf_notes(self, pattern: alg.Pattern, every: FirstSolutions) -> Iterator[str]:
        """Notes on what the stream has instead of what a triple pattern asks for."""
        if every.number:
            yield from self._nearest_values(pattern, every)
            return
        notes = [*missing_graph(pattern, self.search.facts.source.graph_names(), self.titles)]
        notes = notes or [*self._in_other_streams(pattern)]
        yield from notes
        parts = alg.one_by_one(pattern) or alg.columns_of_event(pattern)
        read = [one for part in parts for one in alg.read_of_stream(part)]
        if not notes and len(read) == 1 and alg.is_one_triple(one := read[0]):
            yield from self._nearest_terms(one.triples[0], one.stream)

    def _in_other_streams(self, pattern: alg.Pattern) -> Iterator[str]:
        """A note if only other streams have what a pattern asks of one."""
        if not alg.reads_triples(pattern) or not pattern.stream:
            return
        if pattern.stream in self.titles.windows or not self.search.all(replace(pattern, stream="")).number:
            return
        there = self._elsewhere(pattern) or "what there is has no stream, or parts of it are in several"
        yield f"the stream {self.titles.term(pattern.stream)} has nothing like this; {there}"

    def _elsewhere(self, pattern: alg.BGP | alg.PathPattern) -> str:
        """The other streams that have what a pattern asks of one; empty if none has."""
        names = [name for name in self.search.facts.streams if name != pattern.stream]
        others = {name: self.search.all(replace(pattern, stream=name)).number for name in names}
        having = sorted((name for name in others if others[name]), key=lambda name: (-others[name], name))
        return f"there is something in {listed(having, self.titles)}" if having else ""

    def _nearest_values(self, pattern: alg.Pattern, every: FirstSolutions) -> Iterator[str]:
        for name, term in fixed(self.search.question.where).items():
            values = Counter(mu[name] for mu, _, _ in every.solutions if name in mu)
            if not values or term in values:
                continue
            slip = slip_of(term, values)
            if slip is not None:
                other, difference = slip
                yield (
                    f"?{name} is never {self.titles.term(term)} here; the nearest is {self.titles.term(other)} "
                    f"({times(values[other])}): {difference.text}"
                )
            else:
                shown = ", ".join(f"{self.titles.term(v)}" for v, _ in values.most_common(NEAREST))
                more = ", …" if len(values) > NEAREST else ""
                yield f"?{name} is never {self.titles.term(term)} here; it is {shown}{more}"

    def _nearest_terms(self, triple: alg.Triple, stream: str) -> Iterator[str]:
        source = self.search.facts.source
        places = ("predicate", "subject", "object")
        constants = {place: term for place in places if (term := alg.constant_of(getattr(triple, place)))}
        for place in places:
            if place not in constants:
                continue
            rest = {p: t for p, t in constants.items() if p != place}
            index = {"subject": 0, "predicate": 1, "object": 2}[place]
            matched = source.match(rest.get("subject"), rest.get("predicate"), rest.get("object"), stream, None)
            values = Counter(occurrence[:3][index] for occurrence in matched)
            if constants[place] in values:
                continue  # there is such a triple, but with two nodes where the pattern has one variable
            closest = nearest(constants[place], values)
            text = self.titles.term(constants[place])
            if closest is None:
                continue
            other, difference = closest
            if difference.rank < NEAR:
                yield (
                    f"the {place} {text} never occurs here; the nearest is {self.titles.term(other)} "
                    f"({times(values[other])}): {difference.text}"
                )
                return
            if place == "predicate" and not any(source.match(None, constants[place], None, stream, None)):
                yield f"the predicate {text} never occurs; those that do: {self._counted(values)}"
                return
        if "predicate" in constants:
            yield from self._other_ends(constants, stream)

    def _other_ends(self, constants: dict[str, str], stream: str) -> Iterator[str]:
        """What a predicate that occurs has at an end where the pattern has a term that it never has there."""
        predicate = constants["predicate"]
        for place, index in (("subject", 0), ("object", 2)):
            matched = self.search.facts.source.match(None, predicate, None, stream, None)
            values = Counter(occurrence[:3][index] for occurrence in matched)
            if place in constants and values and constants[place] not in values:
                yield (
                    f"the predicate {self.titles.term(predicate)} never has the {place} "
                    f"{self.titles.term(constants[place])}; it has {self._counted(values)}"
                )

    def _counted(self, values: Counter[str]) -> str:
        shown = ", ".join(f"{self.titles.term(value)} ({n})" for value, n in values.most_common(NEAREST))
        return shown + ", …" * (len(values) > NEAREST)


def times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _leaves(plan: alg.Pattern) -> Iterator[alg.Pattern]:
    """The triple patterns and paths of a plan, and the columns of its records, except those inside EXISTS."""
    yield from alg.one_by_one(plan) or alg.columns_of_event(plan)
    for child in alg.children(plan):
        yield from _leaves(child)


def _different(misses: Iterable[Miss]) -> Iterator[Miss]:
    """The first few distinct misses."""
    texts: set[tuple[str, ...]] = set()
    for miss in misses:
        if miss.because not in texts:
            texts.add(miss.because)
            yield miss
        if len(texts) == NEAREST:
            return


def _one_side(own: Iterable[PlanCondition]) -> tuple[PlanCondition, ...]:
    """Each key from one of its sides, so that all conditions of a node can be removed at once."""
    kept: dict[object, PlanCondition] = {}
    for condition in own:
        kept.setdefault((condition.text,) if condition.kind == "key" else condition.mark, condition)
    return tuple(kept.values())


def _distance(item: Refused) -> tuple[float, int]:
    return sum(measure.distance for measure in item[1]), -item[0][2]


def _key(solution: Solution, names: frozenset[str]) -> object:
    mu, start, end = solution
    return frozenset((name, term) for name, term in mu.items() if name in names), start, end


def _count(sample: FirstSolutions) -> Count:
    return Count(sample.number, sample.complete)
