"""The scenarios in SQL, by DuckDB, over a complete table in memory.

One row an event: ``time``, ``s`` (its subject), and a column for each predicate, empty where the event has none;
integers are BIGINT, other terms the texts that they are.  The answers come as ``(start, end, …)``; what SQL would round
is taken apart, such as a mean into its sum and its count.  Unlike the engine, SQL is asked once, at the end, and knows
of no event that is still to come: NEXT becomes a window function, SEQ a join over an inequality of times, an absence a
look at the next row that would break it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from benchmarks.scenarios.definition import MINUTE, SECOND, TEN, decimal, integer, mean, value
from benchmarks.workloads import w12_sessions
from benchmarks.workloads.definition import Answer
from etalis_py.events import Event

TUMBLE = f"((time + {TEN - 1}) // {TEN} * {TEN})"
STATES = """('"OR"', '"ID"', '"CA"')"""
ASKED = ", ".join(f"'<urn:p:a{n}>'" for n in (7, 20, 101, 2_001, 2_019))


@dataclass(frozen=True, slots=True)
class InSql:
    """A scenario in SQL: the shape in which SQL says it, the query, and the terms of an answer from its columns."""

    shape: str
    query: str
    terms: Callable[..., tuple[str, ...]]


def _same(*terms: str) -> tuple[str, ...]:
    return terms


def _counted(user: str, n: int) -> tuple[str, ...]:
    return integer(n), user


QUERIES = {
    "N1": InSql(
        "a projection",
        "SELECT time, time, auction, bidder, price * 0.908::DECIMAL(4, 3) FROM events WHERE price IS NOT NULL",
        lambda auction, bidder, euro: (auction, bidder, decimal(Decimal(euro))),
    ),
    "N2": InSql(
        "a selection",
        f"SELECT time, time, auction, price FROM events WHERE auction IN ({ASKED})",
        lambda auction, price: (auction, integer(price)),
    ),
    "N3": InSql(
        "an equi-join",
        f"""SELECT p.time, a.time, a.s, p.city, p.name FROM events p JOIN events a ON a.seller = p.s AND p.time < a.time
        WHERE p.state IN {STATES} AND a.category = '<urn:p:c1>'""",
        _same,
    ),
    "N4": InSql(
        "a join by window, grouped twice",
        f"""WITH best AS (SELECT {TUMBLE} AS w, auction, max(price) AS price FROM events
            WHERE price IS NOT NULL GROUP BY ALL)
        SELECT w - {TEN}, w, category, sum(best.price)::BIGINT, count(*) FROM best JOIN
        (SELECT {TUMBLE} AS w, s AS auction, category FROM events WHERE category IS NOT NULL) USING (w, auction)
        GROUP BY w, category""",
        lambda category, total, count: (category, mean(total, count)),
    ),
    "N5": InSql(
        "panes of a second, joined sixty times, grouped and ranked",
        f"""WITH panes AS (SELECT (time + {SECOND - 1}) // {SECOND} AS pane, auction, count(*) AS n FROM events
            WHERE auction IS NOT NULL GROUP BY ALL),
        counts AS (SELECT pane + later AS w, auction, sum(n)::BIGINT AS n FROM panes, range(60) AS r(later)
            GROUP BY ALL)
        SELECT (w - 60) * {SECOND}, w * {SECOND}, auction, n FROM counts
        WHERE w >= 60 AND w * {SECOND} < (SELECT max(time) FROM events WHERE auction IS NOT NULL) + {MINUTE}
        QUALIFY row_number() OVER (PARTITION BY w ORDER BY n DESC, auction) = 1""",
        lambda auction, n: (auction, integer(n)),
    ),
    "N7": InSql(
        "grouped by window",
        f"""SELECT w - {TEN}, w, max(price) FROM (SELECT {TUMBLE} AS w, price FROM events WHERE price IS NOT NULL)
        GROUP BY w""",
        lambda top: (integer(top),),
    ),
    "N8": InSql(
        "a join by window",
        f"""SELECT w - {TEN}, w, auction, name, p FROM
        (SELECT {TUMBLE} AS w, s AS p, name FROM events WHERE name IS NOT NULL) JOIN
        (SELECT {TUMBLE} AS w, s AS auction, seller AS p FROM events WHERE seller IS NOT NULL) USING (w, p)""",
        _same,
    ),
    "edges": InSql(
        "LAG by switch",
        """SELECT before, time, s, state FROM (SELECT *, lag(time) OVER w AS before, lag(state) OVER w AS old
            FROM events WINDOW w AS (PARTITION BY s ORDER BY time)) WHERE state <> old""",
        lambda switch, state: (switch, integer(state)),
    ),
    "averages": InSql(
        "prices that come and go as changes, summed up by symbol",
        f"""WITH changes AS (SELECT s, time AS t, price AS v, 1 AS n, time FROM events UNION ALL
            SELECT s, time + {5 * SECOND}, -price, -1, NULL FROM events
            WHERE time + {5 * SECOND} <= (SELECT max(time) FROM events)),
        points AS (SELECT s, t, sum(v) AS v, sum(n) AS n, max(time) AS time FROM changes GROUP BY s, t)
        SELECT first, last, s, v::BIGINT, n::BIGINT FROM (SELECT s, sum(v) OVER w AS v, sum(n) OVER w AS n,
            min(time) OVER five AS first, max(time) OVER five AS last FROM points
            WINDOW w AS (PARTITION BY s ORDER BY t),
            five AS (PARTITION BY s ORDER BY t RANGE BETWEEN {5 * SECOND - 1} PRECEDING AND CURRENT ROW))
        WHERE n > 0""",
        lambda symbol, total, count: (mean(total, count), symbol),
    ),
    "cars": InSql(
        "LAG three times, by car",
        """SELECT first, time, s FROM (SELECT s, time, lag(time, 3) OVER w AS first,
            "at" = lag("at") OVER w AND "at" = lag("at", 2) OVER w AND "at" = lag("at", 3) OVER w AS stands FROM events
            WINDOW w AS (PARTITION BY s ORDER BY time)) WHERE stands""",
        _same,
    ),
    "fraud": InSql(
        "a join by card over an inequality of times",
        f"""SELECT a.time, b.time, b.amount, b.s, b.shop FROM events a JOIN events b ON a.s = b.s AND a.time < b.time
            AND b.time - a.time <= {MINUTE} AND a.shop <> b.shop WHERE a.amount < 20 AND b.amount > 950""",
        lambda amount, card, shop: (integer(amount), card, shop),
    ),
    "threshold": InSql(
        "the next low row by machine, in a window function",
        f"""SELECT time, time + {MINUTE}, s, temp FROM (SELECT *, min(time) FILTER (temp <= 90) OVER
            (PARTITION BY s ORDER BY time ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS low FROM events)
        WHERE temp > 90 AND (low IS NULL OR low > time + {MINUTE})""",
        lambda machine, temperature: (machine, integer(temperature)),
    ),
    "funnel": InSql(
        "a join of three over inequalities of times",
        f"""SELECT v.time, b.time, b.buys, b.s FROM events b JOIN events a ON a.s = b.s AND a.adds = b.buys
            AND a.time < b.time JOIN events v ON v.s = b.s AND v.views = b.buys AND v.time < a.time
            AND b.time - v.time <= {10 * MINUTE}""",
        _same,
    ),
    "five": InSql(
        "a join of five over the distance of times",
        f"""SELECT least(a.time, b.time, c.time, d.time, e.time) AS first,
            greatest(a.time, b.time, c.time, d.time, e.time) AS last, a.a, b.b, c.c, d.d, e.e, a.s FROM events a
            JOIN events b ON b.s = a.s AND b.b IS NOT NULL AND abs(b.time - a.time) <= {SECOND}
            JOIN events c ON c.s = a.s AND c.c IS NOT NULL AND abs(c.time - a.time) <= {SECOND}
            JOIN events d ON d.s = a.s AND d.d IS NOT NULL AND abs(d.time - a.time) <= {SECOND}
            JOIN events e ON e.s = a.s AND e.e IS NOT NULL AND abs(e.time - a.time) <= {SECOND}
        WHERE a.a IS NOT NULL AND last - first <= {SECOND}""",
        lambda *values: (*map(integer, values[:5]), values[5]),
    ),
    "sessions": InSql(
        "gaps and islands: LAG, a running count, grouped",
        f"""SELECT min(time), max(time) + {w12_sessions.GAP}, s, count(*) FROM (SELECT s, time, coalesce(sum(fresh) OVER
            (PARTITION BY s ORDER BY time), 0) AS visit FROM (SELECT s, time, (time - lag(time) OVER
            (PARTITION BY s ORDER BY time) > {w12_sessions.GAP})::INT AS fresh FROM events)) GROUP BY s, visit""",
        _counted,
    ),
}


def rows_of(events: Sequence[Event]) -> pa.Table:
    """The events as a table of one row each."""
    columns: dict[str, list[Any]] = {}
    for n, event in enumerate(events):
        for _, predicate, term in event.triples:
            column = columns.setdefault(predicate[1:-1].rpartition(":")[2], [None] * len(events))
            column[n] = value(term) if term.endswith("integer>") else term
    subjects = [event.triples[0][0] for event in events]
    return pa.table({"time": [event.end for event in events], "s": subjects, **columns})


def answered_in_sql(query: InSql, events: pa.Table, repeat: int) -> tuple[float, list[Answer]]:
    """The median processor time of a query on one thread, from the table to Arrow, and its answers."""
    import duckdb  # only the benchmarks need it

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("given", events)
    connection.execute("CREATE TABLE events AS SELECT * FROM given")
    seconds = []
    found = connection.sql(query.query).to_arrow_table()
    for _ in range(repeat):
        begun = time.process_time()
        found = connection.sql(query.query).to_arrow_table()
        seconds.append(time.process_time() - begun)
    rows = zip(*(column.to_pylist() for column in found.columns), strict=True)
    return statistics.median(seconds), [(start, end, query.terms(*terms)) for start, end, *terms in rows]
