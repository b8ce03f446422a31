"""What ``explain`` prints for a program: windows and facts, then the rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from etalis_compiler.explain import Explanation, explain
from etalis_compiler.rsp import Fact, WindowPlan
from etalis_compiler.rsp.explain import WindowExplainer, plan_data
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.printing import sorted_nodes

from etalis_py.engine.executor_choice import choose
from etalis_py.executors.columns.costs import SUMMED, aggregated_while
from etalis_py.executors.columns.rows_or_columns import Division, node_forms
from etalis_py.executors.columns.summed_queries import summed_queries


@dataclass(frozen=True, slots=True)
class ProgramExplanation(Explanation):
    """A program explained; ``str()`` is the text.

    ``executor`` says how the rules run over large batches; ``windows`` is the part about windowed queries and facts.
    """

    executor: str = ""
    forms: Mapping[str, str] = field(default_factory=dict)
    """For each way in which nodes take large batches those that do, by their names in the text."""
    windows: str = ""
    windowed: Mapping[str, Any] = field(default_factory=dict)
    families: tuple[str, ...] = ()
    """For each family, the query that stands for it and the number of queries, which differ only in constants."""

    @classmethod
    def of(
        cls,
        plans: Sequence[WindowPlan],
        facts: Sequence[Fact],
        rules: ir.Rules,
        prefixes: Mapping[str, str],
        readers: Mapping[str, Sequence[str]],
        knowledge: Any = None,
    ) -> ProgramExplanation:
        """Explain plans, facts and rules; ``readers``: which queries read what each query makes."""
        explained = explain(rules, prefixes)
        same: dict[str, Any] = {f.name: getattr(explained, f.name) for f in fields(Explanation)}
        choice = choose([*plans, *facts], rules, knowledge=knowledge)
        if choice.rules is not None:
            same["executor"] = large_batches(choice.rules, rules)
            same["forms"] = _named_forms(explained, choice.rules)
        elif plans or facts:
            same["executor"] = windowed_batches([*plans, *facts], choice.windows)
        if not plans and not facts:
            return cls(**same)
        from etalis_py.executors.windows.groups import incremental

        about = WindowExplainer(prefixes, readers)
        names = [output.query for output in rules.outputs]
        kept = [incremental(plan, any(w.default for w in plan.windows)) is not None for plan in plans]
        shown = (about.plan(plan, kept=up_to_date) for plan, up_to_date in zip(plans, kept, strict=True))
        text = "\n".join([*map(about.fact, facts), *shown, *map(about.rule, names)])
        data = {
            "windowed": [plan_data(plan) for plan in plans],
            "facts": [{"query": f.name, "keys": list(f.keys), "stream": f.feeds} for f in facts],
        }
        return cls(**same, windows=text, windowed=data)

    def __str__(self) -> str:
        rules = Explanation.__str__(self) if self.rules.outputs or not self.windows else ""
        executor = "\n  ".join(("large batches", *self.executor.splitlines())) if self.executor else ""
        nodes = (f"{form}: {names}" for form, names in self.forms.items())
        forms = "\n  ".join(("nodes in large batches", *nodes)) if self.forms else ""
        families = "\n  ".join(("families", *self.families)) if self.families else ""
        return "\n\n".join(filter(None, (self.windows, families, rules, executor, forms)))

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        rules = Explanation.to_dict(self)
        if self.executor:
            rules["large_batches"] = self.executor
        if self.forms:
            rules["nodes_in_large_batches"] = dict(self.forms)
        if self.families:
            rules["families"] = list(self.families)
        if not self.windows:
            return rules
        return {**self.windowed, "rules": rules if self.rules.outputs else None}


def _named_forms(explained: Explanation, division: Division) -> dict[str, str]:
    """How the nodes take large batches, in the order and by the names of the text."""
    places = {name: i for i, (name, _) in enumerate(sorted_nodes(explained.rules))}

    def listed(some: Sequence[tuple[str, str]]) -> str:
        ordered = sorted(some, key=lambda one: places.get(one[0], len(places)))
        return ", ".join(explained.names[name] + (f" ({what})" if what else "") for name, what in ordered)

    return {_FORMS[form]: listed(some) for form, some in node_forms(explained.rules, division).items()}


_FORMS = {
    "kernels": "by kernels",
    "distinct values": "once per distinct value",
    "row by row": "row by row",
    "rows": "in rows",
}
_LISTING = {
    True: ", without listing the matches of its SEQ",
    False: ", and lists the matches of its SEQ for the aggregate",
}


def large_batches(division: Division, rules: ir.Rules) -> str:
    """Which executor runs which rules over large batches, and if it is the row executor, why."""
    reason, reasons, summed = division.reason, division.reasons, summed_queries(rules)
    plain = division.is_whole and not (division.by_row or division.by_value or division.conditions or summed)
    if plain or (reason is not None and len(set(reasons.values())) == 1):
        return in_words(reason)
    return "\n".join(_by_query(division, summed))


def windowed_batches(steps: Sequence[WindowPlan | Fact], reason: str | None) -> str:
    """The same for windowed queries and facts; ``reason``: why they run in rows, None if they run in columns."""
    selects = [select for step in steps if isinstance(step, WindowPlan) for select in alg.selects(step.select)]
    calls = [call for select in selects for call in select.aggregates]
    needs = aggregated_while(calls, kinds=SUMMED) if reason is None else None
    return in_words(reason) + (f", as long as {needs}" if needs else "")


def _by_query(division: Division, summed: Mapping[str, Sequence[alg.AggregateCall] | None]) -> Iterator[str]:
    """A line for what kernels do, and one for each query of which some is done per distinct value, or in rows."""
    by_row, by_value, conditions = division.by_row, division.by_value, division.conditions
    special = {*by_row, *by_value, *conditions, *summed}
    fast = [q for q, reason in division.reasons.items() if reason is None and q not in special]
    if fast:
        yield f"{', '.join(fast)} {'runs' if len(fast) == 1 else 'run'} in columns"
    for query, reason in division.reasons.items():
        if query in special and reason is None:
            calls = summed.get(query)
            listing = _LISTING[calls is not None] if query in summed else ""
            need = aggregated_while(calls or (), kinds=SUMMED[:1]) or conditions.get(query)
            once = f", once per distinct value in {by_value[query]}" if query in by_value else ""
            rows = f", but row by row in {by_row[query]}" if query in by_row else ""
            needs = f", as long as {need}" if need else ""
            yield f"{query} runs in columns{listing}{once}{rows}{needs}"
    for query, reason in division.reasons.items():
        if reason is not None:
            yield f"{query} runs in rows, because {reason}"


def in_words(reason: str | None) -> str:
    """Where large batches run, given the reason why they cannot run in columns."""
    return "run in columns" if reason is None else f"run in rows, because {reason}"
