"""A part of the rules that runs in rows, as one operator among the operators of columns.

Cost: as in rows for occurrences with predicates that the part reads; a comparison for all others.  State: that of its
rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from etalis_compiler.stratify import output_id
from etalis_rules import program as ir
from etalis_rules.operators import event_patterns, leaves

from etalis_py.events import Triple
from etalis_py.executors.columns.events import WIDTH, Events, in_order
from etalis_py.executors.columns.instants import by_instant, table_of_rows
from etalis_py.executors.columns.network import RowSection
from etalis_py.executors.columns.occurrence_history import LeafHistory
from etalis_py.executors.columns.records import spelled
from etalis_py.executors.columns.reports import TableReport
from etalis_py.executors.columns.tables import SolutionTable, concat_tables
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.rows.run.rule_subset import PartialRules
from etalis_py.kernel.batch import Report, Row
from etalis_py.sparql import OccurrenceLog

TriplesOf = Callable[[int], Callable[[Row], Iterable[Triple]]]
"""Gives, for the number of a report, the function from a row of that report to its triples."""


class PartOperator:
    """One part of the rules, run in rows; ``nodes`` has all nodes of the program by name."""

    def __init__(
        self,
        part: RowSection,
        nodes: Mapping[str, ir.Node],
        fed: frozenset[str],
        rules: PartialRules,
        triples_of: TriplesOf,
        terms: Terms,
    ) -> None:
        """``fed`` are the ids of the outputs whose triples others read or remember."""
        self.terms = terms
        self._fed = fed
        self._rules = rules
        self._triples_of = triples_of
        self._reading = LeafHistory(leaves(nodes[name] for name in part.nodes), terms)
        self.reads_events = bool(event_patterns(nodes[name] for name in part.nodes))

    def begin(self, log: OccurrenceLog | None) -> None:
        """Continue with the state of rows, and this history."""
        self._rules.begin(log)

    def advance(
        self, by_stream: SolutionTable, derived: Sequence[SolutionTable], events: Events, through: int
    ) -> tuple[list[TableReport], dict[str, tuple[SolutionTable, Events]]]:
        """Run the rules over a batch, up to the time ``through``.

        ``by_stream`` are the occurrences of the batch, ``derived`` those that other rules derived; ``events`` are used
        if a rule reads whole events.  Returns the reports and, by output, the triples that others read: as occurrences
        (s, p, o, stream) and as events.
        """
        table = concat_tables([self._reading.of(by_stream), *derived], 4)
        s, p, o, stream = (self.terms.spellings(column) for column in table.columns)
        occurrences = list(zip(s, p, o, table.start.tolist(), stream, strict=True))
        whole = spelled(events, self.terms) if self.reads_events else ()
        reports = self._rules.take(by_instant(occurrences, table.at), whole, through)
        by_number: dict[int, list[Report]] = {}
        for report in sorted(reports, key=_instant):
            by_number.setdefault(report[0], []).append(report)
        tables: list[TableReport] = []
        more: dict[str, list[Events]] = {}
        for number, some in by_number.items():
            output = self._rules.output_of(number)
            assert output.source is not None
            instants_of = [t for _, t, rows in some for _ in rows]
            table = table_of_rows(
                instants_of, [x for _, _, rows in some for x in rows], len(output.source.columns), self.terms
            )
            tables.append(TableReport.of(number, table, self.terms, range(len(table.columns))))
            if (name := output_id(output.query)) in self._fed:
                more.setdefault(name, []).append(self._derived(number, output.stream, some))
        given = {name: in_order(of_queries) for name, of_queries in more.items()}
        return tables, {name: (events.occurrences, events) for name, events in given.items()}

    def _derived(self, number: int, stream: str, reports: Sequence[Report]) -> Events:
        """The events that a CONSTRUCT derives from its reported rows."""
        triples_of = self._triples_of(number)
        # A row of an aggregate may end before the instant in which it is known (x[0] < t).  What reads the events of
        # such rows runs in rows, in the same section.
        made = [(t, x[1], tuple(triples_of(x))) for _, t, rows in reports for x in rows if x[0] == t]
        rows = [(t, start, *triple, stream, "") for t, start, triples in made for triple in triples]
        sizes = [len(triples) for _, _, triples in made if triples]
        table = table_of_rows([x[0] for x in rows], rows, WIDTH, self.terms)
        return Events(np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64))), table)


def _instant(report: Report) -> int:
    return report[1]
