"""Generated code by which goals that wait for the first value that fits are not looked at again by others.

Such a goal is one of a join that looks for the nearest solution and has a comparison as its condition.  All goals of a
bucket that satisfy it leave the bucket.  Of those that stay the search leaves a *mark*: the value that would be
satisfied first, and the end of the latest goal that it looked at.  The marks of a bucket are a stack: from bottom to
top their times rise, and their values are satisfied sooner.  A search takes away the marks whose values satisfy it, and
looks at the goals after the one that is then on top.

Where a higher price is waited for, and the prices are 9, 4, 6, 5: 4 finds nothing and marks the goal 9, 6 takes the
goal 4, 5 looks at the goal 6 alone and marks it.

Cost: a goal is looked at again only if one that its mark stands for, too, is satisfied; among values of several kinds,
such as doubles and decimals, whenever a value goes beyond those before it.  State: at most one mark for each goal.
"""

from __future__ import annotations

from dataclasses import dataclass

from etalis_rules import program as ir

from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.inserting import in_vain, only_comparison
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.values import EXACT

LONG_AGO = -(1 << 63)
"""Before the end of any goal."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of a node: ``by_key`` is the source of the stacks, ``op`` compares a goal's value with another."""

    by_key: str
    op: str

    def look_up(self, w: Writer, code: Code, unless: str = "") -> None:
        """Leave in ``since`` the end of the latest goal that cannot satisfy the comparison with ``v0``.

        ``unless`` is the source of what forbids the use of marks.
        """
        long_ago = code.names.use("LONG_AGO", LONG_AGO)
        w(f"since, m, soonest = {long_ago}, None, None")
        with w.block(f"if {f'not ({unless}) and ' if unless else ''}{in_vain(code)}:"):
            w(f"m = {self.by_key}.get(k)")
            with w.block("if m is None:"):
                w(f"m = {self.by_key}[k] = []")
            with w.block(f"elif m and {_of_another_kind(code, 'm[-1][0]')}:"):
                w("m.clear()")
            with w.block(f"while m and m[-1][0] {self.op} v0:"):
                w("m.pop()")
            with w.block("if m:"):
                w("since = m[-1][1]")

    def stop(self, w: Writer) -> None:
        """Stop looking at goals ``x``, from the latest to the earliest, at the first that is marked."""
        with w.block("if x[0] <= since:"):
            w("break")

    def stays(self, w: Writer, code: Code) -> None:
        """Goal ``x`` does not satisfy the comparison: ``soonest`` is the value that is satisfied first.

        A value of another kind may be compared in other ways: of it only is known that ``v0`` did not satisfy it.
        """
        with w.block(f"elif {_of_another_kind(code, 'w0')}:"):
            w("soonest = v0")
        nan = "w0 != w0"  # it is never satisfied
        with w.block(f"elif (soonest is None or w0 {self.op[0]} soonest) and not {nan}:"):
            w("soonest = w0")

    def leave(self, w: Writer) -> None:
        """Mark the goals of bucket ``b`` that stay, if the search has looked at all that came after the last mark."""
        with w.block("if m is not None and b and since < b[-1][0] < begun:"):
            with w.block(f"if m and (soonest is None or not soonest {self.op[0]} m[-1][0]):"):
                w("m[-1] = m[-1][0], b[-1][0]")
            with w.block("else:"):
                with w.block("if len(m) >= len(b):"):
                    w("m.clear()")  # those of goals that have expired
                w("m.append((v0 if soonest is None else soonest, b[-1][0]))")


def _of_another_kind(code: Code, value: str) -> str:
    """Source that is true if Python's operators may not compare a value with ``v0``, nor with others of its kind.

    Integers and decimals are one kind: they are compared by their exact values.
    """
    exact = code.names.use("EXACT", EXACT)
    return f"{value}.__class__ is not c0 and not (c0 in {exact} and {value}.__class__ in {exact})"


def marks_of(code: Code, name: str, node: ir.Join) -> Marks | None:
    """The marks of a node whose condition is a single comparison of the two sides."""
    if node.policy or code.is_late(name):
        return None
    compared = only_comparison(node.condition, node.left, node.right, node.certain)
    return None if compared is None else Marks(code.edges(name, "G"), compared.op)
