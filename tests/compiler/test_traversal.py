"""Walking and rewriting trees: α-renaming goes by the types of the fields, and no field can be forgotten."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, is_dataclass
from types import ModuleType
from typing import Any

import pytest
from etalis_compiler import ast
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.algebra import nodes
from etalis_rules.relations import Op
from etalis_rules.traversal import Name, Text, descend, own_names, rename, renamings, transform, walk


def classes(module: ModuleType) -> list[Any]:
    return [
        c for _, c in inspect.getmembers(module, inspect.isclass) if is_dataclass(c) and c.__module__ == module.__name__
    ]


X, Y = alg.Var("x"), alg.Var("y")
BGP = alg.BGP((alg.Triple(X, alg.Const("<p>"), Y),))


@pytest.mark.parametrize("cls", [*classes(nodes), *classes(ir)], ids=lambda cls: getattr(cls, "__name__", repr(cls)))
def test_the_fields_of_every_class_say_which_texts_are_names(cls: Any) -> None:
    """A field that is a plain ``str`` makes this fail: declare it as ``Name`` or as ``Text``."""
    if cls is not ir.Rules:  # a program: its nodes are renamed one by one
        renamings(cls)


def test_a_new_node_with_an_unmarked_field_is_noticed() -> None:
    @dataclass(frozen=True)
    class Repeated:
        count: int
        by: str

    with pytest.raises(TypeError, match=r"Repeated\.by is a plain str: declare it as Name"):
        rename(Repeated(3, "x"), {"x": "z"})


def test_a_new_node_with_its_names_marked_is_renamed() -> None:
    @dataclass(frozen=True)
    class Repeated:
        by: Name
        pairs: tuple[tuple[Name, alg.Expr], ...]
        rows: tuple[tuple[Text, ...], ...]
        child: alg.Pattern | None

    node = Repeated("x", (("y", X),), (("x",),), None)
    assert rename(node, {"x": "a", "y": "b"}) == Repeated("a", (("b", alg.Var("a")),), (("x",),), None)
    assert list(own_names(node)) == ["x", "y"]


def test_renaming_reaches_every_place_of_a_name() -> None:
    select = alg.Select(
        alg.Filter(alg.Extend(BGP, "x", X), (alg.Exists(alg.Minus(BGP, alg.Table(("x",), (("x",),)), ("x",))),)),
        ("x",),
        extends=(("x", X),),
        grouped=True,
        keys=("x",),
        aggregates=(alg.AggregateCall("x", "SUM", X),),
        having=(X,),
        order=(alg.OrderKey(X),),
    )
    changed = rename(alg.SubSelect(select), {"x": "z"})
    assert "'x'" not in repr(changed).replace("rows=(('x',),)", "")
    assert rename(changed, {"z": "x"}) == alg.SubSelect(select)


def test_what_holds_no_such_name_stays_the_same_object() -> None:
    pattern = alg.Filter(BGP, (alg.Apply("<", (X, Y)),))
    assert rename(pattern, {"z": "a"}) is not None
    assert transform(pattern, lambda node: None) is pattern


def test_transform_takes_a_replacement_as_it_is_and_goes_on_elsewhere() -> None:
    seen: list[Any] = []

    def change(node: Any) -> Any:
        seen.append(node)
        return alg.UNIT if isinstance(node, alg.BGP) else None

    assert transform(alg.Join(Op.AND, BGP, alg.Block(BGP)), change) == alg.Join(Op.AND, alg.UNIT, alg.Block(alg.UNIT))
    assert not any(isinstance(node, alg.Triple) for node in seen)


def test_descend_changes_what_stands_below_and_not_the_node() -> None:
    pattern = alg.Block(alg.Block(BGP))
    assert descend(pattern, lambda node: node.child if isinstance(node, alg.Block) else None) == alg.Block(BGP)


def test_walk_meets_parents_first_from_left_to_right() -> None:
    names = [node.name for node in walk(alg.Apply("+", (X, alg.Apply("-", (Y, X))))) if isinstance(node, alg.Var)]
    assert names == ["x", "y", "x"]


def test_syntax_is_transformed_as_well() -> None:
    both = ast.Binary("+", ast.Var("x"), ast.Var("y"))
    changed = transform(both, lambda node: ast.Var("z") if isinstance(node, ast.Var) else None)
    assert changed == ast.Binary("+", ast.Var("z"), ast.Var("z"))
