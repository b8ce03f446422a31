"""Queries of other contests and of daily work: edges, averages of prices, cars that stand, fraud, a funnel, joins.

The edges are those of the challenge of DEBS 2012, the averages those of DEBS 2022, the cars those of Linear Road.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Sequence
from itertools import product

from benchmarks.scenarios.definition import (
    MINUTE,
    MS,
    PREFIX,
    SECOND,
    STREAM,
    Scenario,
    integer,
    mean,
    name,
    record,
    value,
)
from benchmarks.workloads import w12_sessions
from benchmarks.workloads.definition import Answer
from etalis_py.events import Event


def _single(time: int, subject: str, predicate: str, object_: str) -> Event:
    return Event(time, time, ((name(subject), name(predicate), object_),), STREAM)


# --- edges ---


def states(size: int) -> list[Event]:
    """A reading each millisecond of one of fifty switches, one in ten of which has turned."""
    draw = random.Random(12)
    now = [0] * 50
    found = []
    for n in range(1, size + 1):
        switch = draw.randrange(50)
        now[switch] ^= draw.random() < 0.1
        found.append(_single(n * MS, f"s{switch}", "state", integer(now[switch])))
    return found


def edges(stream: Sequence[Event]) -> list[Answer]:
    answers: list[Answer] = []
    last: dict[str, tuple[int, str]] = {}
    for event in stream:
        ((subject, _, state),) = event.triples
        before = last.get(subject)
        if before is not None and before[1] != state:
            answers.append((before[0], event.end, (subject, state)))
        last[subject] = event.end, state
    return answers


# --- averages ---


def prices(size: int) -> list[Event]:
    """A price each millisecond of one of five hundred symbols."""
    draw = random.Random(22)
    return [
        _single(n * MS, f"s{draw.randrange(500)}", "price", integer(draw.randrange(100, 10_000)))
        for n in range(1, size + 1)
    ]


def averages(stream: Sequence[Event]) -> list[Answer]:
    """At each price, the new row of its symbol, and of those of which a price has left."""
    answers: list[Answer] = []
    queue = deque[tuple[int, str]]()
    windows: dict[str, deque[tuple[int, int]]] = defaultdict(deque)
    sums: dict[str, int] = defaultdict(int)
    for event in stream:
        ((symbol, _, term),) = event.triples
        changed = {symbol}
        windows[symbol].append((event.end, value(term)))
        queue.append((event.end, symbol))
        sums[symbol] += value(term)
        while queue[0][0] <= event.end - 5 * SECOND:
            _, left = queue.popleft()
            sums[left] -= windows[left].popleft()[1]
            changed.add(left)
        for each in changed:
            if window := windows[each]:
                answers.append((window[0][0], window[-1][0], (mean(sums[each], len(window)), each)))
    return answers


# --- cars that stand ---


def positions(size: int) -> list[Event]:
    """A report each millisecond of one of a thousand cars, of which one in five stands still."""
    draw = random.Random(4)
    at = [0] * 1_000
    found = []
    for n in range(1, size + 1):
        car = draw.randrange(1_000)
        if car % 5 or draw.random() < 0.2:
            at[car] += draw.randrange(1, 9)
        found.append(_single(n * MS, f"c{car}", "at", integer(at[car])))
    return found


def standing(stream: Sequence[Event]) -> list[Answer]:
    answers: list[Answer] = []
    last: dict[str, deque[tuple[int, str]]] = defaultdict(lambda: deque(maxlen=4))
    for event in stream:
        ((car, _, at),) = event.triples
        reports = last[car]
        reports.append((event.end, at))
        if len(reports) == 4 and len({place for _, place in reports}) == 1:
            answers.append((reports[0][0], event.end, (car,)))
    return answers


# --- fraud ---


def payments(size: int) -> list[Event]:
    """A payment each millisecond with one of ten thousand cards."""
    draw = random.Random(3)
    found = []
    for n in range(1, size + 1):
        columns = {"amount": integer(draw.randrange(1, 1_000)), "shop": name(f"shop{draw.randrange(500)}")}
        found.append(record(n * MS, name(f"card{draw.randrange(10_000)}"), columns))
    return found


def small_then_large(stream: Sequence[Event]) -> list[Answer]:
    answers: list[Answer] = []
    small: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for event in stream:
        (card, _, amount), (_, _, shop) = event.triples
        if value(amount) > 950:
            small[card] = [goal for goal in small[card] if goal[0] >= event.end - MINUTE]
            answers += [(t, event.end, (amount, card, shop)) for t, there in small[card] if there != shop]
        elif value(amount) < 20:
            small[card].append((event.end, shop))
    return answers


# --- a threshold for a minute ---


def temperatures(size: int) -> list[Event]:
    """A temperature each millisecond of one of a thousand machines, which goes up and down by steps."""
    draw = random.Random(60)
    now = [60] * 1_000
    found = []
    for n in range(1, size + 1):
        machine = draw.randrange(1_000)
        now[machine] = min(100, max(20, now[machine] + draw.randrange(-6, 7)))
        found.append(_single(n * MS, f"m{machine}", "temp", integer(now[machine])))
    return found


def hot_for_long(stream: Sequence[Event]) -> list[Answer]:
    answers: list[Answer] = []
    hot: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for event in stream:
        ((machine, _, term),) = event.triples
        if value(term) > 90:
            hot[machine].append((event.end, term))
        elif machine in hot:
            over = hot.pop(machine)
            answers += [(t, t + MINUTE, (machine, term)) for t, term in over if t + MINUTE < event.end]
    for machine, over in hot.items():
        answers += [(t, t + MINUTE, (machine, term)) for t, term in over]
    return answers


# --- a funnel ---


def clicks(size: int) -> list[Event]:
    """Views, one in eight followed by the cart, one in four of these by a purchase; a click each millisecond."""
    draw = random.Random(11)
    found, later = [], deque[tuple[str, str, str]]()
    for n in range(1, size + 1):
        if later and draw.random() < 0.3:
            user, step, item = later.popleft()
        else:
            user, step, item = f"u{draw.randrange(5_000)}", "views", name(f"i{draw.randrange(200)}")
        if step == "views" and draw.random() < 1 / 8:
            later.append((user, "adds", item))
        elif step == "adds" and draw.random() < 1 / 4:
            later.append((user, "buys", item))
        found.append(_single(n * MS, user, step, item))
    return found


def funnel(stream: Sequence[Event]) -> list[Answer]:
    answers: list[Answer] = []
    views: dict[tuple[str, str], list[int]] = defaultdict(list)
    adds: dict[tuple[str, str], list[int]] = defaultdict(list)
    for event in stream:
        ((user, step, item),) = event.triples
        key = user, item
        if step == name("views"):
            views[key].append(event.end)
        elif step == name("adds"):
            adds[key].append(event.end)
        else:
            answers += [
                (viewed, event.end, (item, user))
                for viewed, added in product(views[key], adds[key])
                if viewed < added and event.end - viewed <= 10 * MINUTE
            ]
    return answers


# --- a join of five ---


def readings(size: int) -> list[Event]:
    """The five values of one of a thousand stations, which come apart, a value each millisecond."""
    draw = random.Random(5)
    found = []
    for n in range(1, size + 1):
        found.append(_single(n * MS, f"s{(n // 5 * 7) % 1_000}", "abcde"[n % 5], integer(draw.randrange(100))))
    return found


def five(stream: Sequence[Event]) -> list[Answer]:
    answers: list[Answer] = []
    kept: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for event in stream:
        ((station, kind, term),) = event.triples
        here = [kept[station, name(letter)] if name(letter) != kind else [(event.end, term)] for letter in "abcde"]
        for values in product(*here):
            start = min(time for time, _ in values)
            if event.end - start <= SECOND:
                answers.append((start, event.end, (*(value for _, value in values), station)))
        own = kept[station, kind]
        own[:] = [(time, old) for time, old in own if event.end - time <= SECOND]
        own.append((event.end, term))
    return answers


# --- sessions ---


def sessions(stream: Sequence[Event]) -> list[Answer]:
    feed = w12_sessions.loop()
    return [*feed(stream), *feed(())]


SCENARIOS = (
    Scenario(
        "edges",
        "each change of a switch",
        f"{PREFIX}SELECT ?s ?v WHERE {{ {{ ?s :state ?u }} NEXT {{ ?s :state ?v }} FILTER (?v != ?u) }}",
        states,
        edges,
    ),
    Scenario(
        "averages",
        "the mean of the last five seconds, by symbol, at each price",
        f"{PREFIX}SELECT ?s (AVG(?p) AS ?mean) WHERE {{ ?s :price ?p }} WITHIN 5 s GROUP BY ?s",
        prices,
        averages,
        dense=True,
    ),
    Scenario(
        "cars",
        "four equal positions of a car, one after the other",
        f"{PREFIX}SELECT ?c WHERE {{ {{ ?c :at ?x }} REPEAT 4 BY ?c WHERE (?x = PREVIOUS(?x)) }}",
        positions,
        standing,
    ),
    Scenario(
        "fraud",
        "a small payment and within a minute a large one elsewhere, by card",
        f"{PREFIX}SELECT ?card ?shop ?amount WHERE {{\n"
        "  { EVENT { ?card :amount ?a ; :shop ?there FILTER (?a < 20) }\n"
        "    SEQ EVENT { ?card :amount ?amount ; :shop ?shop FILTER (?amount > 950) } } WITHIN 1 min\n"
        "  FILTER (?shop != ?there) }",
        payments,
        small_then_large,
    ),
    Scenario(
        "threshold",
        "above a limit, and not below it for a minute",
        f"{PREFIX}SELECT ?m ?t WHERE {{\n"
        "  { ?m :temp ?t FILTER (?t > 90) } SEQ NOT { ?m :temp ?u FILTER (?u <= 90) } WITHIN 1 min }",
        temperatures,
        hot_for_long,
    ),
    Scenario(
        "funnel",
        "viewed, put into the cart and bought within ten minutes",
        f"{PREFIX}SELECT ?u ?i WHERE {{\n"
        "  { ?u :views ?i } SEQ { ?u :adds ?i } SEQ { ?u :buys ?i } } WITHIN 10 min",
        clicks,
        funnel,
    ),
    Scenario(
        "five",
        "five values of a station that come within a second",
        f"{PREFIX}SELECT ?s ?a ?b ?c ?d ?e WHERE {{ ?s :a ?a ; :b ?b ; :c ?c ; :d ?d ; :e ?e }} WITHIN 1 s",
        readings,
        five,
    ),
    Scenario(
        "sessions",
        "visits, each when it is over: after twenty minutes without a click (W12)",
        w12_sessions.QUERY,
        w12_sessions.events,
        sessions,
    ),
)
