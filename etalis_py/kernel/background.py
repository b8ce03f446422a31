"""Summarizes the loaded knowledge for the compiler, which only needs its vocabulary and schema."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from etalis_compiler.knowledge import KnowledgeSummary

from etalis_py.knowledge import Knowledge
from etalis_py.knowledge.owl_rules import owl_rules


class _Asked(Mapping[str, frozenset[str]]):
    """A mapping that asks the schema at every look-up, so that nothing is copied."""

    def __init__(self, ask: Callable[[str], Collection[str]], any_: bool) -> None:
        self._ask = ask
        self._any = any_

    def __getitem__(self, key: str) -> frozenset[str]:
        graphs = frozenset(self._ask(key))
        if not graphs:
            raise KeyError(key)
        return graphs

    def __iter__(self) -> Iterator[str]:
        raise TypeError("the schema is asked term by term; it is not listed")

    def __len__(self) -> int:
        return int(self._any)


def compiler_summary(knowledge: Knowledge, changes: bool = False) -> KnowledgeSummary:
    """The vocabulary and schema of the knowledge as it is now."""
    schema: Any = knowledge.schema
    if knowledge.entailment == "rdf":
        return KnowledgeSummary(
            predicates=frozenset(knowledge.default.predicates()), graphs=bool(knowledge.names()), changes=changes
        )
    ruled = bool(schema.specimens) or bool(len(schema.classes))
    return KnowledgeSummary(
        predicates=frozenset(knowledge.default.predicates()),
        graphs=bool(knowledge.names()),
        sub_properties=_Asked(schema.sub_properties, ruled),
        sub_classes=_Asked(schema.sub_classes, ruled),
        domain_of=_Asked(lambda c: schema.type_tests(c).subject_of, ruled),
        range_of=_Asked(lambda c: schema.type_tests(c).object_of, ruled),
        type_is_ruled=schema.type_is_ruled,
        changes=changes,
        infers=True,
        joins=knowledge.entailment == "owlrl" and bool(owl_rules(knowledge.default)),
    )
