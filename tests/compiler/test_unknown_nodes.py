"""A kind of node that something does not know is an error there, and never taken for another kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
from etalis_compiler.diagnostics import Source
from etalis_compiler.explain import explain
from etalis_compiler.pipeline import compile_sources, rules_of
from etalis_compiler.reach import reaches
from etalis_compiler.shards import shard_plan
from etalis_compiler.stratify import stratify
from etalis_compiler.unbounded import unbounded
from etalis_rules import program as ir
from etalis_rules.clauses import LEFT, Clauses
from etalis_rules.printing import node_names, print_rules
from etalis_rules.relations import Op, OuterOp

from etalis_py.executors.columns.frames import RuleSteps
from etalis_py.executors.columns.identity import compared_columns
from etalis_py.executors.columns.joins import kernel_of
from etalis_py.executors.columns.network import network
from etalis_py.executors.columns.supported_rules import by_instant, unsupported_node
from etalis_py.executors.rows.generate.blocks import emit_steps
from etalis_py.executors.rows.generate.layout import layouts
from etalis_py.executors.rows.generate.writer import Writer


@dataclass(frozen=True, slots=True)
class Stranger:
    """A node of a kind that nobody has heard of."""

    head: tuple[str, ...]
    child: ir.Ref
    owner: str = ""


def _with_a_stranger() -> ir.Rules:
    """The rules of a query, whose topmost node has become a stranger."""
    text = "SELECT ?x { { ?c :p ?x } SEQ { ?c :q ?y } }"
    rules = rules_of(compile_sources([Source(text)]))
    source = rules.outputs[0].source
    assert source is not None
    top = rules.node(source.node)
    stranger = cast(ir.Node, Stranger(top.head, ir.refs(top)[0]))
    return replace(rules, nodes=tuple((n, stranger if n == source.node else node) for n, node in rules.nodes))


ANALYSES: dict[str, Callable[[ir.Rules], object]] = {
    "strata": lambda rules: stratify(dict(rules.nodes), rules.outputs),
    "how far back solutions reach": reaches,
    "shards": shard_plan,
    "unbounded state": lambda rules: unbounded(rules, node_names(rules)),
    "printed rules": print_rules,
    "explain": lambda rules: str(explain(rules)),
    "layouts of rows": lambda rules: layouts(dict(rules.nodes)),
    "supported in columns": lambda rules: [unsupported_node(node) for _, node in rules.nodes],
    "instant by instant": lambda rules: [by_instant(node, False) for _, node in rules.nodes],
    "compared columns": lambda rules: compared_columns(network(rules)),
}


@pytest.mark.parametrize("analysis", ANALYSES.values(), ids=ANALYSES)
def test_an_analysis_refuses_a_node_that_it_does_not_know(analysis: Callable[[ir.Rules], object]) -> None:
    rules = _with_a_stranger()
    with pytest.raises((AssertionError, TypeError), match="Stranger"):
        analysis(rules)


STEPS: dict[str, Callable[[Any], object]] = {
    "in rows": lambda step: emit_steps(
        Writer(), cast(Any, None), "", (step,), cast(Any, None), "continue", lambda: None
    ),
    "in columns": lambda step: RuleSteps((step,), cast(Any, None)).applied(cast(Any, [None])),
    "in clauses": lambda step: list(Clauses.steps(cast(Any, None), (step,), LEFT)),
}


@pytest.mark.parametrize("taken", STEPS.values(), ids=STEPS)
def test_a_step_that_is_not_known_is_refused(taken: Callable[[Any], object]) -> None:
    with pytest.raises(AssertionError, match="Stranger"):
        taken(Stranger((), ir.Ref("a", ())))


def test_what_a_node_is_made_from_stands_in_its_fields() -> None:
    below = ir.Ref("a", ("x",))
    assert ir.refs(cast(ir.Node, Stranger((), below))) == (below,)


@pytest.mark.parametrize("enum", [Op, OuterOp])
def test_there_is_no_operator_of_another_name(enum: Any) -> None:
    with pytest.raises(ValueError, match="'nearby' is not a valid"):
        enum("nearby")


def test_columns_know_every_operator_and_no_other() -> None:
    assert {kernel_of(op) for op in Op} <= set(range(9))
    with pytest.raises(AttributeError):
        kernel_of(cast(Op, "nearby"))
