"""The judge: EP-SPARQL's definitions written down literally over a whole finite stream, slow and obvious.

The definitions are those of [EP] and, beyond it, of docs/semantics.md.  It shares nothing with the engine but the
syntax tree and the spelling of terms: ``plan`` turns syntax into operators, ``matching`` answers basic graph patterns
and paths, ``patterns`` the operators, ``policies`` and ``placement`` the consuming policies, ``reports`` windows,
aggregates and modifiers, ``closure`` and ``strata`` the rules.  ``strategies`` draws programs and streams;
``compare`` and ``printing`` help to compare and to show them.

Readings
========
Where the definitions leave a choice, this is the one taken.

Groups
  1. Triples parted only by FILTERs are one basic graph pattern; its blank nodes are dropped after it.
  2. What stands at a place in a group (BIND, OPTIONAL, MINUS, and an EXISTS inside a BIND) sees the solution, and the
     interval, of what stands before it, as SPARQL's algebra builds it; the group's FILTERs see the whole group.
  3. F of an optional part are the filters of its group, also when WITHIN stands after the group; those inside STREAM
     or GRAPH stay there.
  4. EXISTS substitutes literally (SPARQL 18.6); targets of BIND and VALUES keep their variables and are then joined
     with the solutions around it, also where EXISTS stands in EXISTS.
  5. STREAM <s> is matched by occurrences of that stream alone, not by background; STREAM ?s ranges over the streams
     that have an IRI.  GRAPH is matched by background alone.  With a FROM or FROM NAMED only those graphs are the
     background.

Time
  6. A solution that depends on what has not been reported yet (a row of an aggregating sub-SELECT may end before the
     instant that reports it) counts as known at that instant: what is decided earlier does not see it, and rules fire
     then.  What a rule derives from it is an event of the past, which NEXT, NOT, SEQ NOT, SEQ OPTIONAL, REPEAT and SKIP
     do not see: they had decided when they came to know of it.
  7. What is timeless and rests on an absence in the stream (OPTIONAL family, MINUS, EXISTS, an ungrouped aggregate of
     nothing) is known when the stream has ended: it joins nothing that has a time (else a longer stream would take rows
     back), unless as the mandatory side of the OPTIONAL family; such derived triples are reported and enter nothing.
  8. NOW() is the instant at which the solution is known; for a timeless one it is an error, as getENDTIME() is.
  9. DISTINCT, ORDER BY and canonical order put the timeless first, or last when some pattern can match an occurrence.

Paths
  10. As in SPARQL 18.2.2.4 a path ``/`` or ``^`` is triples with hidden variables and ``|`` is a union (so they may
      give a row twice); ``* + ?`` and negated sets are sets of <x, y, hull>; the block is one basic graph pattern.
  11. ``p*`` is the zero-length steps and ``p+``: a zero-length step never lengthens the hull of another path.  With
      ``p`` a path that may be empty, ``p+`` is ``p*``.
  12. A node has a zero-length step for each occurrence that it is subject or object of (one without interval for each
      background triple); a constant written at an end of the path has the timeless one only.

Rules
  13. A template's triple with an unbound variable is left out alone, as in SPARQL ([EP] drops the whole solution).
  14. LIMIT, OFFSET and aggregates are negative dependencies too; OPTIONALSEQ's left is delayed as SEQ's is.
  15. A pattern certainly holds an occurrence when one of its triple patterns matches no background triple.

Reports
  16. A row is its projected bindings with its interval: it changed when the last report had no equal one (as a
      multiset).  A new solution in a group changes its hull, hence its row.
  17. Rows with no timed contribution are reported once, of the last result; timeless solutions never leave a window and
      count for no EVENTS.
  18. WITHIN after the WHERE clause of a query without aggregates bounds every solution; a trailing VALUES is joined
      before it.
  19. ORDER BY without aggregates orders each instant; LIMIT and OFFSET count in that order over the run.
  20. A trailing VALUES is joined before the solutions are reported; with aggregates, to the groups (SPARQL 18.2.4.3).
  21. The solutions of a WHERE clause are ordered by end, start and the terms of all its variables, projected or not:
      that decides which are the last n EVENTS.  GROUP_CONCAT keeps it.  MIN and MAX depend on the terms alone: the
      least or greatest, of equal ones ("1", "01") the first in spelling; SAMPLE is the MIN of what is no error.
      COUNT(DISTINCT *) counts different bindings.  Which of several nodes that rules made is the least, or comes
      first, is left open: a case that rests on it has no answer here (``Undetermined``).

Policies
  22. Inside EXISTS, and at the right of MINUS, nothing is consumed; a sub-SELECT has its query's policy or its own.
  23. Canonical terms of a goal: all variables in scope at that side, by name, unbound as the empty string.
  24. Arrivals at an instant: the left side's in canonical order, then the right side's.  Every arrival checks the
      other side's goals, takes at most one and retracts it; its own goal stays to be taken.  So in EQUALS the right
      side picks.
  25. The positive halves of OPTIONALSEQ and EQUALSOPTIONAL are those of SEQ and EQUALS with F as the condition; the
      negative half is the mandatory solutions that took part in no pair.
  26. Timeless solutions arrive before the stream, are the earliest candidates, and are consumed like any other.
  27. A conjunct sinks from a join into every side that certainly binds all its variables, through BIND (unless it
      names its variable), STREAM, GRAPH and groups, into both branches of a UNION that bind them, not into a
      sub-SELECT.  It stays when it asks for time, EXISTS or chance.  BIND's variable is not certainly bound.
      NEXT hands conjuncts and bounds to its left side alone, NOT to what must happen, REPEAT to nothing.
  28. An outer join hands conjuncts to its mandatory side, and F's to the optional side; never BOUND or COALESCE.
      What remains is a condition of the join node in a group of inner joins, and a filter after an outer join.
  29. Upper bounds of getDURATION (``<`` or ``<=`` a constant, either way round) and WITHIN also hold at every node
      below: sides of joins, branches of UNION, the mandatory side, and for F the optional side.

Absence, NEXT, REPEAT
  32. SEQ, EQUALS, Allen's relations, PAR, NEXT and SEQ NOT … SEQ consume, each with its whole temporal relation as part
      of what makes a candidate; NOT, a deadline and REPEAT do not.  What NOT keeps out is evaluated without a policy.
  33. A deadline's solution is known at its end, also when the stream ended before.
  34. The steps of REPEAT are from x₁ to x₂ and so on: F says nothing of a run of one.  Two elements agree on a BY
      variable that neither binds.  Of N only the BY variables count.  F and EXISTS do not go together.
  38. STREAM and EVENT are the group of their operand, and so is EVENT inside STREAM; its filters that see the name of
      the event's graph, or have EXISTS, stay in P.  What the right group binds in every solution its filters read
      there.  An EXISTS of EVENT that mentions another variable of the left is refused.
  35. A side that may be timeless, or that is reported later than it ends, is refused beside NOT, NEXT, REPEAT and SKIP.
  41. The stream starts with the least start of the events that end first: what began before and ends later was under
      way.  What START is joined with begins at that time, and must have a time.  A sequence after a UNION with START
      consumes as the union of the sequences does.  By itself START is the time, a point.
  42. With ties an event of one time comes after those before it in the source, or after those with a lesser value, as
      ORDER BY compares them (of several values the least; an event without any comes last).  One that lasts on starts
      after all events of its time, and what the clock decides comes after all events of its time.  SKIP PAST
      (getENDTIME()), as DISJOINT, goes by the places, and so does getSTARTTIME() there.
  40. AT END makes the solutions of the WHERE clause points before ORDER BY and LIMIT, and the rows of aggregates after.
  39. SKIP orders by all variables in scope in its group.  A comparison with what is no time is an error, so nothing is
      kept after a solution in which e is none.  Nothing sinks into the group.

EVENT
  36. P is evaluated without a policy; known is what the event is known at, also for what in P uses none of its triples.
      A BGP in P is a set over all its variables and whether it uses the event; so is a path.
  37. Conjuncts from outside never sink into P.  Its patterns are read positively, and only by rules' events without a
      graph.

Values
  30. Products and sums are exact; quotients (and AVG) have 34 significant digits, and one more for every power of ten
      by which the dividend is the greater, rounded half to even.  Results are canonical as in XSD 1.1 ("2" for the
      decimal two, "1.5E0" for doubles); STR and a cast to string keep the lexical form.
  31. ``=`` between different known kinds (number, string, boolean, language string, IRI) is false, and an error where a
      datatype is unknown or a lexical form invalid.  ORDER BY puts NaN before the other numbers, and after these
      booleans, strings, language-tagged strings, dateTimes, dates, times, durations and all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from etalis_compiler import ast

from etalis_py.events import Event

from .closure import Background, Endless, Occurrence, Triple, World, applied, closure, derived, occurrences, reports_of
from .expressions import Undetermined
from .placement import placed
from .plan import Plan, Refused, Unsupported, apart, plan_query
from .records import records
from .reports import Report
from .strata import Rule, Unstratified
from .ties import in_places

POLICIES = ("unrestricted", "chronological", "recent")


class Row(NamedTuple):
    """A solution of a SELECT: what is bound, and its interval; a timeless one has none."""

    bindings: Mapping[str, str]
    start: int | None
    end: int | None


class Derived(NamedTuple):
    """What one solution of a CONSTRUCT makes."""

    triples: frozenset[Triple]
    start: int | None
    end: int | None


class Asked(NamedTuple):
    """An ASK's answer and the end of the first solution, in the instant in which it first holds; None without time."""

    value: bool
    instant: int | None


Answer = list[Row] | list[Derived] | Asked


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Every query's answer, the Q-closure of the stream, and the background with the timeless derived triples."""

    answers: dict[str, Answer]
    closure: frozenset[Occurrence]
    background: frozenset[Triple]


def answers(
    queries: ast.Document | ast.Query | Sequence[ast.Query],
    events: Iterable[Event],
    background: Background | None = None,
    policy: str = "unrestricted",
    schema_entailment: Iterable[Triple] | None = None,
    names: Sequence[str] | None = None,
) -> dict[str, Answer]:
    """The answer of each query by its name: its registered one, the one given, or q1, q2, … by position."""
    return evaluation(queries, events, background, policy, schema_entailment, names).answers


def evaluation(
    queries: ast.Document | ast.Query | Sequence[ast.Query],
    events: Iterable[Event],
    background: Background | None = None,
    policy: str = "unrestricted",
    schema_entailment: Iterable[Triple] | None = None,
    names: Sequence[str] | None = None,
    place_conjuncts: bool = False,
    ties: str | None = None,
) -> Evaluation:
    """The whole evaluation; ``place_conjuncts`` uses the consuming policies' plan also where nothing is consumed.

    ``ties``: events of one time are ordered by their places in the source (``"source"``), or by a predicate.
    """
    if isinstance(queries, ast.Document):
        queries = queries.queries
    elif isinstance(queries, ast.Query):
        queries = (queries,)
    known = background or Background()
    rules, others = [], []
    for i, query in enumerate(queries):
        ruling = query.policy or policy
        if ruling not in POLICIES:
            raise ValueError(f"unknown policy {ruling!r}: one of {', '.join(POLICIES)}")
        if any(d.kind != "graph" for d in query.dataset) or isinstance(query.form, ast.Describe):
            raise Unsupported("windows over streams and DESCRIBE are not part of EP-SPARQL's definitions")
        plan = plan_query(query)
        if ruling != "unrestricted" or place_conjuncts:
            plan = placed(apart(plan))
        if isinstance(query.form, ast.Construct):
            stream = query.register.name if query.register and query.register.kind == "STREAM" else ""
            rules.append(Rule(i, query, plan, ruling, stream))
        else:
            others.append((i, query, plan, ruling))
    schema = frozenset(schema_entailment or ())
    events = tuple(in_places(events, ties) if ties else events)
    world = World(occurrences(events), frozenset(known.default), dict(known.named or {}), schema, records(events))
    world = closure(rules, world)
    found: dict[int, Answer] = {}
    for rule in rules:
        reported = applied(rule, reports_of(rule.query, rule.plan, world, rule.policy))
        rows = [(derived(rule, r), r) for r in reported]
        found[rule.index] = [Derived(triples, _time(r.start), _time(r.end)) for triples, r in rows if triples]
    for i, query, plan, ruling in others:
        found[i] = _answer(query, plan, reports_of(query, plan, world, ruling))
    return Evaluation(
        {_name(i, q, names): found[i] for i, q in enumerate(queries)}, frozenset(world.occurrences), world.background
    )


def _answer(query: ast.Query, plan: Plan, rows: list[Report]) -> Answer:
    if isinstance(query.form, ast.Ask):
        if not rows:
            return Asked(False, None)
        first = min(rows, key=lambda r: (r.at, r.end or 0))
        return Asked(True, _time(first.end))
    return [Row(dict(r.mu), _time(r.start), _time(r.end)) for r in rows]


def _time(t: int | None) -> int | None:
    """A time as the source gave it."""
    return None if t is None else int(t)


def _name(i: int, query: ast.Query, names: Sequence[str] | None) -> str:
    if names is not None:
        return names[i]
    return query.register.name if query.register and query.register.kind == "QUERY" else f"q{i + 1}"


__all__ = [
    "Answer",
    "Asked",
    "Background",
    "Derived",
    "Endless",
    "Evaluation",
    "Refused",
    "Row",
    "Undetermined",
    "Unstratified",
    "Unsupported",
    "answers",
    "evaluation",
]
