"""``why_not``: the entry point of this package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from etalis_compiler.explain import prefixes_of
from etalis_compiler.rsp import WindowPlan
from etalis_rules import algebra as alg
from etalis_rules.spelling import Spelling

from etalis_py.engine.program import Program
from etalis_py.events import Event, Retraction
from etalis_py.events.clock import Clock
from etalis_py.kernel.matches import Match
from etalis_py.streams import Stream
from etalis_py.streams.drafting import Naming, naming_of
from etalis_py.values.expressions import condition
from etalis_py.whynot.blocking_solutions import blockers_of
from etalis_py.whynot.explaining import Explainer, split_filters
from etalis_py.whynot.modifiers import after_the_pattern
from etalis_py.whynot.question import At, Question, Where, chosen, conditions_of, plan_of, span_of
from etalis_py.whynot.refusal_margins import Measurer
from etalis_py.whynot.report import Report
from etalis_py.whynot.rules import to_ask_of_rules
from etalis_py.whynot.search import Search, Work, solution_of
from etalis_py.whynot.stream import Facts, facts_of, read
from etalis_py.whynot.titles import Titles
from etalis_py.whynot.windows import Windowed, asked_of, plan_asked, windowed


def why_not(
    program: Program,
    stream: Stream | Iterable[Event],
    *,
    query: str = "",
    where: Where = "",
    at: At | None = None,
    clock: Clock | None = None,
    work: Work = Work(),  # noqa: B008 - frozen
    **options: Any,
) -> Report:
    """Why a program has no match, or not the expected one, over a finite stream.

    ``where`` is a condition on the variables of the query (``"?c = :acme"``) and ``at`` the time at which the match
    was expected to end (``5``, ``"T1/T2"``), by the clock of the stream, or ``clock``.  ``query`` names the query if
    the program has several; ``options`` are ``mapping``, ``time`` and ``subject``, which read rows as ``run`` does,
    and those of ``Engine``.

    >>> from etalis_py import compile, event
    >>> program = compile("SELECT ?c { ?c :price ?x . FILTER (?x > 10) }")
    >>> print(program.why_not([event(":acme :price 9.5", 1)]))
    q1 has no match.
    <BLANKLINE>
    One condition refuses it
      FILTER (?x > 10)
          ?c = :acme, ?x = 9.5 [1]
            9.5 > 10 fails by 0.5
    <BLANKLINE>
    How many solutions each part has  in all
    FILTER (?x > 10)                       0  ←
    └─ ?c :price ?x                        1
    """
    events, own_clock = read(stream, program.prefixes, *_reading(options))
    clock = clock or own_clock
    if program.plans and (plan := plan_asked(program, query)) is not None:
        conjuncts = conditions_of(where, asked_of(program, plan))
        content = windowed(program, plan, conjuncts, span_of(at, clock), events, clock, options)
        return _of_windows(content, None, work, frozenset((plan.name,)))
    if program.plans and query and query not in (names := [*(plan.name for plan in program.plans), *_names(program)]):
        raise ValueError(f"there is no query {query}; the program has {', '.join(names)}")
    asked = chosen(program.compilation.queries, query)
    if alg.has_event(asked.algebra) and any(isinstance(event, Retraction) for event in events):
        raise ValueError(
            f"query {asked.name} has EVENT and the stream withdraws events, which why-not does not follow: give it the "
            "corrected stream, or ask the same group without EVENT"
        )
    if alg.has_start(asked.algebra.pattern):
        raise ValueError(f"query {asked.name} has START, which why-not does not follow: ask it without START")
    question = Question(asked, plan_of(asked.algebra), conditions_of(where, asked), span_of(at, clock))
    facts = facts_of(program, asked.name, events, clock, options)
    return _explained(program, question, facts, work, frozenset((asked.name,)))


def _reading(options: dict[str, Any]) -> tuple[Any, Naming]:
    """Takes out of the options what reads rows."""
    mapping = options.pop("mapping", None)
    return mapping, naming_of(options.pop("time", ""), options.pop("subject", ""), mapping)


def _explained(program: Program, question: Question, facts: Facts, work: Work, seen: frozenset[str]) -> Report:
    titles = Titles(Spelling(prefixes_of(program.compilation)))
    question = replace(question, plan=split_filters(question.plan))
    search = Search(facts, question, work)
    measurer = Measurer(titles, facts.clock, lambda *refused: blockers_of(search, measurer, *refused))
    explainer = Explainer(search, titles, measurer)
    answers = tuple(_wanted(facts.answers, search))
    after = after_the_pattern(explainer, program, answers, lambda match: _fits(match, question))
    return Report(
        query=question.query.name,
        asked=_asked(question, titles, facts),
        matches=tuple(_shown(match, titles, measurer) for match in answers),
        blames=(*after, *explainer.blames(question.plan)),
        plan=explainer.node(question.plan),
        notes=tuple(_notes(facts, question, measurer)),
        rules=() if answers else _of_rules(program, search, work, seen),
        restricted=bool(question.where or question.span),
    )


def _of_windows(content: Windowed, facts: Facts | None, work: Work, seen: frozenset[str]) -> Report:
    """The report of a windowed query, and of the rules whose triples it missed."""
    report = content.report()
    program = content.program
    if report.matches:
        return report
    if facts is None:
        facts = facts_of(program, content.plan.name, content.events, content.clock, content.options)
    windows = frozenset(use.name for use in content.plan.windows)
    return replace(report, rules=_of_rules(program, Search(facts, content.question, work, windows), work, seen))


def _of_rules(program: Program, search: Search, work: Work, seen: frozenset[str]) -> tuple[Report, ...]:
    """The reports of the rules that should have derived what was missed."""
    facts = replace(search.facts, answers=())
    inner = tuple(to_ask_of_rules(program, search, seen))
    seen |= {rule.name for rule, _ in inner}
    reports = []
    for rule, where in inner:
        if isinstance(rule, WindowPlan):
            content = windowed(program, rule, where, None, facts.events, facts.clock, facts.options)
            reports.append(_of_windows(content, facts, work, seen))
        else:
            reports.append(_explained(program, Question(rule, plan_of(rule.algebra), where), facts, work, seen))
    return tuple(reports)


def _names(program: Program) -> list[str]:
    return [query.name for query in program.compilation.queries]


def _wanted(answers: Iterable[Match], search: Search) -> Iterator[Match]:
    """The answers that fit the question; if it is about variables that are not shown, by the plan's solutions."""
    question = search.question
    fitting = [match for match in answers if _fits(match, question)]
    shown = frozenset(question.query.algebra.variables)
    if all(alg.variables(c) <= shown for c in question.where) or question.query.algebra.grouped:
        yield from fitting
        return
    rows = {
        (frozenset((v, mu[v]) for v in shown if v in mu), s, e)
        for mu, s, e in search.wanted(question.plan, at_end=True).solutions
    }
    for match in fitting:
        mu, start, end = solution_of(match)
        if (frozenset(mu.items()), start, end) in rows:
            yield match


def _fits(match: Match, question: Question) -> bool:
    """Whether a match fulfils the question, as far as its own variables tell."""
    if match.boolean is False:
        return False
    mu, start, end = solution_of(match)
    if question.span is not None and not question.span[0] <= end <= question.span[1]:
        return False
    shown = frozenset(question.query.algebra.variables)
    return all(condition(c)(mu, start, end, None) for c in question.about(shown))


def _asked(question: Question, titles: Titles, facts: Facts) -> str:
    words = []
    if question.where:
        words.append(f"with {titles.conditions(question.where)}")
    if question.span is not None:
        start, end = map(facts.clock.render, question.span)
        words.append(f"at {start}" if start == end else f"ending from {start} to {end}")
    return " ".join(words)


def _shown(match: Match, titles: Titles, measurer: Measurer) -> str:
    if match.triples is not None:
        text = " . ".join(" ".join(map(titles.term, triple)) for triple in match.triples)
    elif match.boolean is not None:
        text = "true"
    else:
        text = ", ".join(f"?{name} = {titles.term(term)}" for name, term in match.bindings.items())
    if match.start_us is None or match.end_us is None:
        return text
    return f"{text} {measurer.shown((match.start_us, match.end_us))}"


def _notes(facts: Facts, question: Question, measurer: Measurer) -> Iterator[str]:
    """Problems of the stream as a whole."""
    if not facts.events:
        yield "The stream is empty."
        return
    first, last = min(e.end for e in facts.events), facts.end
    if question.span is not None and (question.span[0] > last or question.span[1] < first):
        yield (
            f"The stream has nothing at that time: its {len(facts.events)} events end from {measurer.time(first)} to "
            f"{measurer.time(last)}."
        )
    if facts.late:
        late = facts.late[0]
        yield (
            f"{len(facts.late)} event{'s' * (len(facts.late) != 1)} came too late and took no part, the first of them "
            f"{measurer.shown((late.start, late.end))}: allow for it with --lateness."
        )
